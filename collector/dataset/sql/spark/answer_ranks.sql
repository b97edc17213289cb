WITH `t2` AS (
  SELECT
    `t1`.`run`,
    `t1`.`rank`,
    `t1`.`step`,
    `t1`.`name`,
    `t1`.`start_ns`,
    `t1`.`duration_ns`,
    ROW_NUMBER() OVER (
      PARTITION BY `t1`.`run`, `t1`.`rank`, `t1`.`step`, `t1`.`name`
      ORDER BY `t1`.`start_ns` ASC NULLS LAST, `t1`.`id` ASC NULLS LAST
    ) - 1 AS `ordinal`
  FROM (
    SELECT
      *
    FROM `kernels` AS `t0`
    WHERE
      `t0`.`class` = 'communication'
  ) AS `t1`
), `t5` AS (
  SELECT
    `t3`.`run`,
    `t3`.`step`,
    `t3`.`name`,
    `t3`.`ordinal`,
    COUNT(`t3`.`rank`) AS `ranks`,
    MIN(`t3`.`start_ns`) AS `first_ns`,
    MAX(`t3`.`start_ns`) AS `last_ns`,
    SUM(`t3`.`start_ns`) AS `sum_ns`,
    MIN(`t3`.`duration_ns`) AS `transfer_ns`
  FROM `t2` AS `t3`
  GROUP BY
    1,
    2,
    3,
    4
)
SELECT
  `t9`.`run`,
  `t9`.`step`,
  `t9`.`name`,
  `t9`.`ordinal`,
  `t14`.`straggler`,
  `t9`.`ranks`,
  `t9`.`last_ns` - `t9`.`first_ns` AS `skew_ns`,
  (
    `t9`.`last_ns` * `t9`.`ranks`
  ) - `t9`.`sum_ns` AS `cost_ns`,
  `t9`.`transfer_ns`
FROM (
  SELECT
    *
  FROM `t5` AS `t6`
  WHERE
    `t6`.`ranks` > 1
) AS `t9`
INNER JOIN (
  SELECT
    `t12`.`of_run`,
    `t12`.`of_step`,
    `t12`.`of_name`,
    `t12`.`of_ordinal`,
    MIN(`t12`.`rank`) AS `straggler`
  FROM (
    SELECT
      *
    FROM (
      SELECT
        `t4`.`run`,
        `t4`.`rank`,
        `t4`.`step`,
        `t4`.`name`,
        `t4`.`start_ns`,
        `t4`.`duration_ns`,
        `t4`.`ordinal`,
        `t10`.`of_run`,
        `t10`.`of_step`,
        `t10`.`of_name`,
        `t10`.`of_ordinal`,
        `t10`.`last_ns`
      FROM `t2` AS `t4`
      INNER JOIN (
        SELECT
          `t6`.`run` AS `of_run`,
          `t6`.`step` AS `of_step`,
          `t6`.`name` AS `of_name`,
          `t6`.`ordinal` AS `of_ordinal`,
          `t6`.`last_ns`
        FROM `t5` AS `t6`
        WHERE
          `t6`.`ranks` > 1
      ) AS `t10`
        ON `t4`.`run` = `t10`.`of_run`
        AND `t4`.`step` = `t10`.`of_step`
        AND `t4`.`name` = `t10`.`of_name`
        AND `t4`.`ordinal` = `t10`.`of_ordinal`
    ) AS `t11`
    WHERE
      `t11`.`start_ns` = `t11`.`last_ns`
  ) AS `t12`
  GROUP BY
    1,
    2,
    3,
    4
) AS `t14`
  ON `t9`.`run` = `t14`.`of_run`
  AND `t9`.`step` = `t14`.`of_step`
  AND `t9`.`name` = `t14`.`of_name`
  AND `t9`.`ordinal` = `t14`.`of_ordinal`
