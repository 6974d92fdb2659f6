"""Arithmetic of agreement, consensus and quality: numpy in, numbers out. Knows no Django, no model and no clock.

The way through: ratings become `patterns` (how many units show each pattern of counts, per problem), patterns become
per-problem `sums`, each statistic is a function of sums, and `estimation` adds the interval and the reason where a
number is undefined. First-error reports have their own shape in `reports`.
"""
