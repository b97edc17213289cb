SELECT
  *
FROM `step_occupancy`
