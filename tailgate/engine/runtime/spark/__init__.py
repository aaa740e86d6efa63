"""The JVM, the Spark session in it, and the circuit that it runs."""
