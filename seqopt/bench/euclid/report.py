
def tables(runs): return []
def write_document(a,b): pass
