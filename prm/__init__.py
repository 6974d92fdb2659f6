"""Process reward models: what they say of a step, how far to trust them, and what people should read next."""
