"""Tests of platform-specific process and socket handling."""
