"""Other people's functions and estimators, called with tensors: one file a library, each a list of records (record.py).

SciPy reads SCIPY_ARRAY_API when it is imported, so these tests have a process of their own: ../test_clients.py starts it,
or SCIPY_ARRAY_API=1 in the environment of pytest does.
"""
