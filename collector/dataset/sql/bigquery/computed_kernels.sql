SELECT
  `t2`.`run`,
  `t2`.`rank`,
  `t2`.`step`,
  `t2`.`name`,
  `t2`.`count`,
  `t2`.`total_ns`,
  `t2`.`min_ns`,
  `t2`.`max_ns`,
  `t5`.`median_ns`
FROM (
  SELECT
    `t0`.`run`,
    `t0`.`rank`,
    `t0`.`step`,
    `t0`.`name`,
    COUNT(*) AS `count`,
    SUM(`t0`.`duration_ns`) AS `total_ns`,
    MIN(`t0`.`duration_ns`) AS `min_ns`,
    MAX(`t0`.`duration_ns`) AS `max_ns`
  FROM `kernels` AS `t0`
  GROUP BY
    1,
    2,
    3,
    4
) AS `t2`
INNER JOIN (
  SELECT
    `t3`.`median_ns`,
    `t3`.`run` AS `of_run`,
    `t3`.`rank` AS `of_rank`,
    `t3`.`step` AS `of_step`,
    `t3`.`name` AS `of_name`
  FROM (
    SELECT
      `t0`.`run`,
      `t0`.`rank`,
      `t0`.`step`,
      `t0`.`name`,
      `t0`.`duration_ns` AS `median_ns`,
      ROW_NUMBER() OVER (
        PARTITION BY `t0`.`run`, `t0`.`rank`, `t0`.`step`, `t0`.`name`
        ORDER BY `t0`.`duration_ns` ASC, `t0`.`id` ASC
      ) - 1 AS `place`,
      COUNT(*) OVER (
        PARTITION BY `t0`.`run`, `t0`.`rank`, `t0`.`step`, `t0`.`name`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `number`
    FROM `kernels` AS `t0`
  ) AS `t3`
  WHERE
    (
      (
        `t3`.`place` * 2
      ) = (
        `t3`.`number` - 1
      )
    )
    OR (
      (
        `t3`.`place` * 2
      ) = (
        `t3`.`number` - 2
      )
    )
) AS `t5`
  ON `t2`.`run` = `t5`.`of_run`
  AND `t2`.`rank` = `t5`.`of_rank`
  AND `t2`.`step` = `t5`.`of_step`
  AND `t2`.`name` = `t5`.`of_name`
