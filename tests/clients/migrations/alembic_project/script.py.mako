revision = ${repr(up_revision)}
