SELECT
  *
FROM `step_devices`
