library(testthat)
library(icqf)

test_check("icqf")
