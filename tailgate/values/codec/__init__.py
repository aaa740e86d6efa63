"""The class of codecs, and parts of codecs that several types share."""
