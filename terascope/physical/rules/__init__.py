"""The rules that make a Job of a Plan, one file each; `terascope.physical.planner` lists them."""
