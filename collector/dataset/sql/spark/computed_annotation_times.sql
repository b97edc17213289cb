SELECT
  `t2`.`run`,
  `t2`.`rank`,
  `t2`.`step`,
  `t2`.`name`,
  COUNT(*) AS `count`,
  SUM(`t2`.`duration_ns`) AS `total_ns`,
  MIN(`t2`.`duration_ns`) AS `min_ns`,
  MAX(`t2`.`duration_ns`) AS `max_ns`,
  MAX(
    IF(
      (
        (
          `t2`.`place` * 2
        ) = (
          `t2`.`number` - 1
        )
      )
      OR (
        (
          `t2`.`place` * 2
        ) = (
          `t2`.`number` - 2
        )
      ),
      `t2`.`duration_ns`,
      NULL
    )
  ) AS `median_ns`
FROM (
  SELECT
    `t1`.`run`,
    `t1`.`rank`,
    `t1`.`step`,
    `t1`.`id`,
    `t1`.`start_ns`,
    `t1`.`duration_ns`,
    `t1`.`external_id`,
    `t1`.`name`,
    `t1`.`thread_id`,
    `t1`.`depth`,
    `t1`.`domain_name`,
    `t1`.`category_name`,
    `t1`.`color`,
    `t1`.`payload`,
    `t1`.`op_sequence`,
    `t1`.`shapes`,
    `t1`.`parent_id`,
    `t1`.`path`,
    `t1`.`details`,
    `t1`.`is_in_step`,
    ROW_NUMBER() OVER (
      PARTITION BY `t1`.`run`, `t1`.`rank`, `t1`.`step`, `t1`.`name`
      ORDER BY `t1`.`duration_ns` ASC NULLS LAST, `t1`.`id` ASC NULLS LAST
    ) - 1 AS `place`,
    COUNT(*) OVER (
      PARTITION BY `t1`.`run`, `t1`.`rank`, `t1`.`step`, `t1`.`name`
      ORDER BY `t1`.`duration_ns` ASC NULLS LAST, `t1`.`id` ASC NULLS LAST
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS `number`
  FROM (
    SELECT
      *
    FROM `annotations` AS `t0`
    WHERE
      `t0`.`is_in_step`
  ) AS `t1`
) AS `t2`
GROUP BY
  1,
  2,
  3,
  4
