"""What a study is: questionnaire, confounds, and every check of what a user gives."""
