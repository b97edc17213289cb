SELECT
  *
FROM `step_backward`
