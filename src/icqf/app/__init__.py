"""The local app: the steps of an analysis in a browser, each of them a call of `icqf.workflow`."""
