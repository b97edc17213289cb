SELECT
  *
FROM `step_launches`
