SELECT
  `t14`.`run`,
  `t14`.`rank`,
  `t14`.`step`,
  `t14`.`start_ns` AS `start`,
  `t14`.`start_ns` + `t14`.`duration_ns` AS `end`,
  (
    `t14`.`process_id` * 16777216
  ) + `t14`.`thread_id` AS `globalTid`,
  `t14`.`correlation_id` AS `correlationId`,
  `t14`.`nameId`,
  `t14`.`return_value` AS `returnValue`,
  IF(`t14`.`domain` = 2, 0, 1) AS `eventClass`
FROM (
  SELECT
    `t3`.`run`,
    `t3`.`rank`,
    `t3`.`step`,
    `t3`.`id`,
    `t3`.`start_ns`,
    `t3`.`duration_ns`,
    `t3`.`domain`,
    `t3`.`callback_id`,
    `t3`.`name`,
    `t3`.`process_id`,
    `t3`.`thread_id`,
    `t3`.`correlation_id`,
    `t3`.`return_value`,
    `t3`.`api`,
    `t3`.`is_outer`,
    `t3`.`op`,
    `t13`.`nameId`
  FROM `api_calls` AS `t3`
  INNER JOIN (
    SELECT
      `t11`.`id` AS `nameId`,
      `t11`.`value` AS `of_nameId`
    FROM (
      SELECT
        ROW_NUMBER() OVER (ORDER BY `t10`.`value` ASC) - 1 AS `id`,
        `t10`.`value`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t1`.`name` AS `value`
            FROM `kernels` AS `t1`
          ) AS `t5`
          UNION DISTINCT
          SELECT
            *
          FROM (
            SELECT
              `t1`.`demangled_name` AS `value`
            FROM `kernels` AS `t1`
          ) AS `t6`
        ) AS `t8`
        UNION DISTINCT
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t0`.`name` AS `value`
            FROM `api_calls` AS `t0`
          ) AS `t4`
          UNION DISTINCT
          SELECT
            *
          FROM (
            SELECT
              `t2`.`path` AS `value`
            FROM `annotations` AS `t2`
          ) AS `t7`
        ) AS `t9`
      ) AS `t10`
    ) AS `t11`
  ) AS `t13`
    ON `t3`.`name` = `t13`.`of_nameId`
) AS `t14`
