"""Runs the Python of a page as a module, in a session: run_page.py FILE daemon|local"""

import importlib.util
import sys
from pathlib import Path

import eagle

path, host = Path(sys.argv[1]), sys.argv[2]
spec = importlib.util.spec_from_file_location(path.stem, path)
assert spec is not None
assert spec.loader is not None
module = importlib.util.module_from_spec(spec)
sys.modules[path.stem] = module
with eagle.local(threads=2) if host == "local" else eagle.connect():
    spec.loader.exec_module(module)
