WITH "t1" AS (
  SELECT
    "t0"."run",
    "t0"."rank",
    "t0"."step",
    "t0"."number",
    "t0"."name",
    "t0"."window_ns",
    "t0"."busy_ns",
    "t0"."activities",
    ROW_NUMBER() OVER (
      PARTITION BY "t0"."run", "t0"."rank"
      ORDER BY "t0"."step" ASC, "t0"."number" ASC
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) - 1 AS "ordinal"
  FROM "step_marks" AS "t0"
), "t5" AS (
  SELECT
    "t2"."run",
    "t2"."rank",
    "t2"."step",
    "t2"."number",
    "t2"."name",
    "t2"."window_ns",
    "t2"."busy_ns",
    "t2"."activities",
    "t2"."ordinal",
    (
      "t2"."number" = 0
    )
    AND (
      (
        "t2"."ordinal" = 0
      ) OR (
        "t2"."name" <> ''
      )
    ) AS "is_apart"
  FROM "t1" AS "t2"
  WHERE
    NOT (
      (
        "t2"."number" = 0
      )
      AND (
        (
          "t2"."ordinal" = 0
        ) OR (
          "t2"."name" <> ''
        )
      )
    )
), "t14" AS (
  SELECT
    "t13"."run" AS "of_run",
    "t13"."rank" AS "of_rank",
    "t13"."twice"
  FROM (
    SELECT
      "t12"."run",
      "t12"."rank",
      MIN("t12"."value") + MAX("t12"."value") AS "twice"
    FROM (
      SELECT
        *
      FROM (
        SELECT
          "t6"."run",
          "t6"."rank",
          "t6"."window_ns" AS "value",
          ROW_NUMBER() OVER (
            PARTITION BY "t6"."run", "t6"."rank"
            ORDER BY "t6"."window_ns" ASC, "t6"."step" ASC, "t6"."number" ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) - 1 AS "place",
          COUNT(*) OVER (
            PARTITION BY "t6"."run", "t6"."rank"
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) AS "count"
        FROM "t5" AS "t6"
      ) AS "t11"
      WHERE
        (
          "t11"."place" * 2
        ) >= (
          "t11"."count" - 2
        )
        AND (
          "t11"."place" * 2
        ) <= "t11"."count"
    ) AS "t12"
    GROUP BY
      1,
      2
  ) AS "t13"
), "t19" AS (
  SELECT
    "t18"."run",
    "t18"."rank",
    "t18"."step",
    "t18"."number",
    "t18"."name",
    "t18"."window_ns",
    "t18"."busy_ns",
    "t18"."activities",
    "t18"."ordinal",
    "t18"."is_apart",
    "t18"."twice",
    ABS((
      "t18"."window_ns" * 2
    ) - "t18"."twice") AS "twice_away"
  FROM (
    SELECT
      "t7"."run",
      "t7"."rank",
      "t7"."step",
      "t7"."number",
      "t7"."name",
      "t7"."window_ns",
      "t7"."busy_ns",
      "t7"."activities",
      "t7"."ordinal",
      "t7"."is_apart",
      "t17"."twice"
    FROM "t5" AS "t7"
    LEFT OUTER JOIN "t14" AS "t17"
      ON "t7"."run" = "t17"."of_run" AND "t7"."rank" = "t17"."of_rank"
  ) AS "t18"
)
SELECT
  "t30"."run",
  "t30"."rank",
  "t30"."step",
  "t30"."number",
  "t30"."name",
  "t30"."window_ns",
  "t30"."busy_ns",
  "t30"."activities",
  "t30"."z",
  CASE
    WHEN "t30"."is_apart"
    THEN 'first'
    WHEN COALESCE("t30"."usual_steps", 0) < 3
    THEN ''
    WHEN ABS("t30"."z") > 3.5
    THEN 'outlier'
    ELSE 'usual'
  END AS "verdict"
FROM (
  SELECT
    "t29"."run",
    "t29"."rank",
    "t29"."step",
    "t29"."number",
    "t29"."name",
    "t29"."window_ns",
    "t29"."busy_ns",
    "t29"."activities",
    "t29"."ordinal",
    "t29"."is_apart",
    "t29"."usual_steps",
    "t29"."twice",
    "t29"."mean_twice_away",
    "t29"."deviation",
    CASE
      WHEN COALESCE("t29"."usual_steps", 0) >= 3
      THEN CASE
        WHEN (
          (
            "t29"."window_ns" * 2
          ) - "t29"."twice"
        ) = 0
        THEN 0.0
        WHEN (
          COALESCE("t29"."usual_steps", 0) >= 3
        )
        AND (
          CASE
            WHEN "t29"."deviation" > 0
            THEN "t29"."deviation" / 2.698
            ELSE "t29"."mean_twice_away" * 0.62665
          END > 0
        )
        THEN (
          (
            "t29"."window_ns" * 2
          ) - "t29"."twice"
        ) / (
          CASE
            WHEN "t29"."deviation" > 0
            THEN "t29"."deviation" / 2.698
            ELSE "t29"."mean_twice_away" * 0.62665
          END * 2
        )
        ELSE NULL
      END
      ELSE NULL
    END AS "z"
  FROM (
    SELECT
      "t4"."run",
      "t4"."rank",
      "t4"."step",
      "t4"."number",
      "t4"."name",
      "t4"."window_ns",
      "t4"."busy_ns",
      "t4"."activities",
      "t4"."ordinal",
      "t4"."is_apart",
      "t10"."usual_steps",
      "t16"."twice",
      "t24"."mean_twice_away",
      "t28"."deviation"
    FROM (
      SELECT
        "t2"."run",
        "t2"."rank",
        "t2"."step",
        "t2"."number",
        "t2"."name",
        "t2"."window_ns",
        "t2"."busy_ns",
        "t2"."activities",
        "t2"."ordinal",
        (
          "t2"."number" = 0
        )
        AND (
          (
            "t2"."ordinal" = 0
          ) OR (
            "t2"."name" <> ''
          )
        ) AS "is_apart"
      FROM "t1" AS "t2"
    ) AS "t4"
    LEFT OUTER JOIN (
      SELECT
        "t8"."run" AS "of_run",
        "t8"."rank" AS "of_rank",
        "t8"."usual_steps"
      FROM (
        SELECT
          "t6"."run",
          "t6"."rank",
          COUNT(*) AS "usual_steps"
        FROM "t5" AS "t6"
        GROUP BY
          1,
          2
      ) AS "t8"
    ) AS "t10"
      ON "t4"."run" = "t10"."of_run" AND "t4"."rank" = "t10"."of_rank"
    LEFT OUTER JOIN "t14" AS "t16"
      ON "t4"."run" = "t16"."of_run" AND "t4"."rank" = "t16"."of_rank"
    LEFT OUTER JOIN (
      SELECT
        "t21"."run" AS "of_run",
        "t21"."rank" AS "of_rank",
        "t21"."mean_twice_away"
      FROM (
        SELECT
          "t20"."run",
          "t20"."rank",
          AVG("t20"."twice_away") AS "mean_twice_away"
        FROM "t19" AS "t20"
        GROUP BY
          1,
          2
      ) AS "t21"
    ) AS "t24"
      ON "t4"."run" = "t24"."of_run" AND "t4"."rank" = "t24"."of_rank"
    LEFT OUTER JOIN (
      SELECT
        "t26"."run" AS "of_run",
        "t26"."rank" AS "of_rank",
        "t26"."twice" AS "deviation"
      FROM (
        SELECT
          "t25"."run",
          "t25"."rank",
          MIN("t25"."value") + MAX("t25"."value") AS "twice"
        FROM (
          SELECT
            *
          FROM (
            SELECT
              "t20"."run",
              "t20"."rank",
              "t20"."twice_away" AS "value",
              ROW_NUMBER() OVER (
                PARTITION BY "t20"."run", "t20"."rank"
                ORDER BY "t20"."twice_away" ASC, "t20"."step" ASC, "t20"."number" ASC
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) - 1 AS "place",
              COUNT(*) OVER (
                PARTITION BY "t20"."run", "t20"."rank"
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS "count"
            FROM "t19" AS "t20"
          ) AS "t23"
          WHERE
            (
              "t23"."place" * 2
            ) >= (
              "t23"."count" - 2
            )
            AND (
              "t23"."place" * 2
            ) <= "t23"."count"
        ) AS "t25"
        GROUP BY
          1,
          2
      ) AS "t26"
    ) AS "t28"
      ON "t4"."run" = "t28"."of_run" AND "t4"."rank" = "t28"."of_rank"
  ) AS "t29"
) AS "t30"
