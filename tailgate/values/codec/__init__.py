"""What a codec is, and parts that several types share."""
