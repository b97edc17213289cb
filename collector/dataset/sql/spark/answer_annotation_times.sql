SELECT
  *
FROM `step_annotations`
