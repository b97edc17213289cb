WITH `t1` AS (
  SELECT
    `t0`.`run`,
    `t0`.`rank`,
    `t0`.`step`,
    `t0`.`id`,
    `t0`.`start_ns`,
    `t0`.`duration_ns`,
    IF(`t0`.`domain` = 2, 'runtime', 'driver') AS `domain`,
    `t0`.`callback_id`,
    `t0`.`name`,
    `t0`.`process_id`,
    `t0`.`thread_id`,
    `t0`.`correlation_id`,
    `t0`.`return_value`,
    `t0`.`api`,
    `t0`.`is_outer`,
    `t0`.`op`
  FROM `api_calls` AS `t0`
)
SELECT
  `t5`.`run`,
  `t5`.`rank`,
  `t5`.`step`,
  `t5`.`api`,
  `t5`.`domain`,
  `t5`.`count`,
  `t5`.`errors`,
  `t5`.`total_ns`,
  `t5`.`min_ns`,
  `t5`.`max_ns`,
  `t7`.`median_ns`
FROM (
  SELECT
    `t2`.`run`,
    `t2`.`rank`,
    `t2`.`step`,
    `t2`.`api`,
    `t2`.`domain`,
    COUNT(*) AS `count`,
    SUM(IF(`t2`.`return_value` <> 0, 1, 0)) AS `errors`,
    SUM(`t2`.`duration_ns`) AS `total_ns`,
    MIN(`t2`.`duration_ns`) AS `min_ns`,
    MAX(`t2`.`duration_ns`) AS `max_ns`
  FROM `t1` AS `t2`
  GROUP BY
    1,
    2,
    3,
    4,
    5
) AS `t5`
INNER JOIN (
  SELECT
    `t4`.`median_ns`,
    `t4`.`run` AS `of_run`,
    `t4`.`rank` AS `of_rank`,
    `t4`.`step` AS `of_step`,
    `t4`.`api` AS `of_api`,
    `t4`.`domain` AS `of_domain`
  FROM (
    SELECT
      `t2`.`run`,
      `t2`.`rank`,
      `t2`.`step`,
      `t2`.`api`,
      `t2`.`domain`,
      `t2`.`duration_ns` AS `median_ns`,
      ROW_NUMBER() OVER (
        PARTITION BY `t2`.`run`, `t2`.`rank`, `t2`.`step`, `t2`.`api`, `t2`.`domain`
        ORDER BY `t2`.`duration_ns` ASC, `t2`.`id` ASC
      ) - 1 AS `place`,
      COUNT(*) OVER (
        PARTITION BY `t2`.`run`, `t2`.`rank`, `t2`.`step`, `t2`.`api`, `t2`.`domain`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `number`
    FROM `t1` AS `t2`
  ) AS `t4`
  WHERE
    (
      (
        `t4`.`place` * 2
      ) = (
        `t4`.`number` - 1
      )
    )
    OR (
      (
        `t4`.`place` * 2
      ) = (
        `t4`.`number` - 2
      )
    )
) AS `t7`
  ON `t5`.`run` = `t7`.`of_run`
  AND `t5`.`rank` = `t7`.`of_rank`
  AND `t5`.`step` = `t7`.`of_step`
  AND `t5`.`api` = `t7`.`of_api`
  AND `t5`.`domain` = `t7`.`of_domain`
