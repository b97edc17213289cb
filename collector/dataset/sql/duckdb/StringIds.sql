SELECT
  ROW_NUMBER() OVER (
    ORDER BY "t9"."value" ASC
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
  ) - 1 AS "id",
  "t9"."value"
FROM (
  SELECT
    *
  FROM (
    SELECT
      *
    FROM (
      SELECT
        "t0"."name" AS "value"
      FROM "kernels" AS "t0"
    ) AS "t3"
    UNION
    SELECT
      *
    FROM (
      SELECT
        "t0"."demangled_name" AS "value"
      FROM "kernels" AS "t0"
    ) AS "t4"
  ) AS "t7"
  UNION
  SELECT
    *
  FROM (
    SELECT
      *
    FROM (
      SELECT
        "t1"."name" AS "value"
      FROM "api_calls" AS "t1"
    ) AS "t5"
    UNION
    SELECT
      *
    FROM (
      SELECT
        "t2"."path" AS "value"
      FROM "annotations" AS "t2"
    ) AS "t6"
  ) AS "t8"
) AS "t9"
