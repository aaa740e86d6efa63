"""The console: a web page over the relations of SQL, and the HTTP server that serves it.

browser ──► `files`: the page
└─► `app`: a statement ──► a session of the user ──► `statements`: server-sent events with the result
"""
