"""What can be told after it happened: one class per fact, in the past tense. Each file is one family."""
