"""`tailgate watch`: finds failures of the other processes, and notifies people and programs of them.

It is a process independent of what it watches, and reads only the folder of the lake and answers of the
processes.
"""
