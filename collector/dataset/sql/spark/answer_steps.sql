SELECT
  `t2`.`run`,
  `t2`.`rank`,
  `t2`.`step`,
  `t2`.`name`,
  `t2`.`end_ns` - `t2`.`start_ns` AS `window_ns`,
  COALESCE(`t5`.`device_busy_ns`, 0) AS `device_busy_ns`,
  COALESCE(`t5`.`activities`, 0) AS `activities`
FROM `steps` AS `t2`
LEFT OUTER JOIN (
  SELECT
    `t3`.`run` AS `of_run`,
    `t3`.`rank` AS `of_rank`,
    `t3`.`step` AS `of_step`,
    `t3`.`device_busy_ns`,
    `t3`.`activities`
  FROM (
    SELECT
      `t1`.`run`,
      `t1`.`rank`,
      `t1`.`step`,
      SUM(`t1`.`busy_ns`) AS `device_busy_ns`,
      SUM(`t1`.`activities`) AS `activities`
    FROM `step_devices` AS `t1`
    GROUP BY
      1,
      2,
      3
  ) AS `t3`
) AS `t5`
  ON `t2`.`run` = `t5`.`of_run`
  AND `t2`.`rank` = `t5`.`of_rank`
  AND `t2`.`step` = `t5`.`of_step`
