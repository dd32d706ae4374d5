"""Plans as answers: records that programs read, lines that people read, and back from records to plans."""
