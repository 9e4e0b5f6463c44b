"""The fixtures of the end-to-end tests: sub, fake, binary."""

import importlib.util
import os

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location(
    "e2e_conftest", os.path.join(HERE, "..", "e2e", "conftest.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

globals().update({name: value for name, value in vars(module).items()
                  if not name.startswith("__")})
