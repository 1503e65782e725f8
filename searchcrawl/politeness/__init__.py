"""When a host may be asked. The reactor asks; the thread "claiming" reserves slots of hosts that share a store, and a
few single requests do it in helper threads.
"""
