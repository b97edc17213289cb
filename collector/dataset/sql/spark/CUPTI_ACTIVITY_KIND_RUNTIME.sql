SELECT
  `t15`.`run`,
  `t15`.`rank`,
  `t15`.`step`,
  `t15`.`start_ns` AS `start`,
  `t15`.`start_ns` + `t15`.`duration_ns` AS `end`,
  (
    `t15`.`process_id` * 16777216
  ) + `t15`.`thread_id` AS `globalTid`,
  `t15`.`correlation_id` AS `correlationId`,
  `t15`.`nameId`,
  `t15`.`return_value` AS `returnValue`,
  IF(`t15`.`domain` = 2, 0, 1) AS `eventClass`
FROM (
  SELECT
    `t14`.`run`,
    `t14`.`rank`,
    `t14`.`step`,
    `t14`.`id`,
    `t14`.`start_ns`,
    `t14`.`duration_ns`,
    `t14`.`domain`,
    `t14`.`callback_id`,
    `t14`.`name`,
    `t14`.`process_id`,
    `t14`.`thread_id`,
    `t14`.`correlation_id`,
    `t14`.`return_value`,
    `t14`.`api`,
    `t14`.`is_outer`,
    `t14`.`op`,
    `t14`.`nameId`
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
      `t13`.`nameId`,
      `t13`.`of_nameId`
    FROM `api_calls` AS `t3`
    INNER JOIN (
      SELECT
        `t11`.`id` AS `nameId`,
        `t11`.`value` AS `of_nameId`
      FROM (
        SELECT
          ROW_NUMBER() OVER (ORDER BY `t10`.`value` ASC NULLS LAST) - 1 AS `id`,
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
            UNION
            SELECT
              *
            FROM (
              SELECT
                `t1`.`demangled_name` AS `value`
              FROM `kernels` AS `t1`
            ) AS `t6`
          ) AS `t8`
          UNION
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
            UNION
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
) AS `t15`
