"""`tailgate watch`: finds failures of the other processes, and notifies people and programs of them.

The process does not depend on the others. It reads only the folder of the lake and answers of the
processes.
"""
