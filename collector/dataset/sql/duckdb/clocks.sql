SELECT
  "t12"."run",
  "t12"."rank",
  "t12"."collectives",
  CASE
    WHEN (
      "t12"."collectives" >= 3
    ) AND (
      ABS("t12"."median_ns") > "t12"."most_ns"
    )
    THEN "t12"."median_ns"
    ELSE 0
  END AS "clock_offset_ns",
  CASE
    WHEN (
      "t12"."collectives" >= 3
    ) AND (
      ABS("t12"."median_ns") > "t12"."most_ns"
    )
    THEN "t12"."error_ns"
    ELSE 0
  END AS "clock_error_ns",
  CASE
    WHEN (
      "t12"."collectives" >= 3
    ) AND (
      ABS("t12"."median_ns") > "t12"."most_ns"
    )
    THEN 'estimated'
    ELSE 'believed'
  END AS "clock"
FROM (
  SELECT
    "t11"."run",
    "t11"."rank",
    "t11"."median_ns",
    "t11"."error_ns",
    COUNT(*) AS "collectives",
    MAX("t11"."away_ns") AS "most_ns"
  FROM (
    SELECT
      "t10"."run",
      "t10"."rank",
      "t10"."step",
      "t10"."name",
      "t10"."start_ns",
      "t10"."duration_ns",
      "t10"."end_ns",
      "t10"."ordinal",
      "t10"."lowest",
      "t10"."apart_ns",
      "t10"."median_ns",
      "t10"."away_ns",
      "t10"."error_ns"
    FROM (
      SELECT
        "t9"."run",
        "t9"."rank",
        "t9"."step",
        "t9"."name",
        "t9"."start_ns",
        "t9"."duration_ns",
        "t9"."end_ns",
        "t9"."ordinal",
        "t9"."lowest",
        "t9"."apart_ns",
        "t9"."median_ns",
        "t9"."away_ns",
        "t9"."place",
        "t9"."number",
        MAX(
          CASE
            WHEN (
              (
                "t9"."place" * 2
              ) = (
                "t9"."number" - 1
              )
            )
            OR (
              (
                "t9"."place" * 2
              ) = (
                "t9"."number" - 2
              )
            )
            THEN "t9"."away_ns"
            ELSE NULL
          END
        ) OVER (
          PARTITION BY "t9"."run", "t9"."rank"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS "error_ns"
      FROM (
        SELECT
          "t8"."run",
          "t8"."rank",
          "t8"."step",
          "t8"."name",
          "t8"."start_ns",
          "t8"."duration_ns",
          "t8"."end_ns",
          "t8"."ordinal",
          "t8"."lowest",
          "t8"."apart_ns",
          "t8"."median_ns",
          "t8"."away_ns",
          ROW_NUMBER() OVER (
            PARTITION BY "t8"."run", "t8"."rank"
            ORDER BY "t8"."away_ns" ASC, "t8"."step" ASC, "t8"."name" ASC, "t8"."ordinal" ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) - 1 AS "place",
          COUNT(*) OVER (
            PARTITION BY "t8"."run", "t8"."rank"
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) AS "number"
        FROM (
          SELECT
            "t7"."run",
            "t7"."rank",
            "t7"."step",
            "t7"."name",
            "t7"."start_ns",
            "t7"."duration_ns",
            "t7"."end_ns",
            "t7"."ordinal",
            "t7"."lowest",
            "t7"."apart_ns",
            "t7"."median_ns",
            ABS("t7"."apart_ns" - "t7"."median_ns") AS "away_ns"
          FROM (
            SELECT
              "t6"."run",
              "t6"."rank",
              "t6"."step",
              "t6"."name",
              "t6"."start_ns",
              "t6"."duration_ns",
              "t6"."end_ns",
              "t6"."ordinal",
              "t6"."lowest",
              "t6"."apart_ns",
              "t6"."place",
              "t6"."number",
              MAX(
                CASE
                  WHEN (
                    (
                      "t6"."place" * 2
                    ) = (
                      "t6"."number" - 1
                    )
                  )
                  OR (
                    (
                      "t6"."place" * 2
                    ) = (
                      "t6"."number" - 2
                    )
                  )
                  THEN "t6"."apart_ns"
                  ELSE NULL
                END
              ) OVER (
                PARTITION BY "t6"."run", "t6"."rank"
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS "median_ns"
            FROM (
              SELECT
                "t5"."run",
                "t5"."rank",
                "t5"."step",
                "t5"."name",
                "t5"."start_ns",
                "t5"."duration_ns",
                "t5"."end_ns",
                "t5"."ordinal",
                "t5"."lowest",
                "t5"."apart_ns",
                ROW_NUMBER() OVER (
                  PARTITION BY "t5"."run", "t5"."rank"
                  ORDER BY "t5"."apart_ns" ASC, "t5"."step" ASC, "t5"."name" ASC, "t5"."ordinal" ASC
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) - 1 AS "place",
                COUNT(*) OVER (
                  PARTITION BY "t5"."run", "t5"."rank"
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) AS "number"
              FROM (
                SELECT
                  *
                FROM (
                  SELECT
                    "t3"."run",
                    "t3"."rank",
                    "t3"."step",
                    "t3"."name",
                    "t3"."start_ns",
                    "t3"."duration_ns",
                    "t3"."end_ns",
                    "t3"."ordinal",
                    "t3"."lowest",
                    "t3"."end_ns" - MAX(CASE WHEN "t3"."rank" = "t3"."lowest" THEN "t3"."end_ns" ELSE NULL END) OVER (
                      PARTITION BY "t3"."run", "t3"."step", "t3"."name", "t3"."ordinal"
                      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                    ) AS "apart_ns"
                  FROM (
                    SELECT
                      "t2"."run",
                      "t2"."rank",
                      "t2"."step",
                      "t2"."name",
                      "t2"."start_ns",
                      "t2"."duration_ns",
                      "t2"."end_ns",
                      "t2"."ordinal",
                      MIN("t2"."rank") OVER (PARTITION BY "t2"."run" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "lowest"
                    FROM (
                      SELECT
                        "t1"."run",
                        "t1"."rank",
                        "t1"."step",
                        "t1"."name",
                        "t1"."start_ns",
                        "t1"."duration_ns",
                        "t1"."start_ns" + "t1"."duration_ns" AS "end_ns",
                        ROW_NUMBER() OVER (
                          PARTITION BY "t1"."run", "t1"."rank", "t1"."step", "t1"."name"
                          ORDER BY "t1"."start_ns" ASC, "t1"."id" ASC
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - 1 AS "ordinal"
                      FROM (
                        SELECT
                          *
                        FROM "kernels" AS "t0"
                        WHERE
                          "t0"."class" = 'communication'
                      ) AS "t1"
                    ) AS "t2"
                  ) AS "t3"
                ) AS "t4"
                WHERE
                  "t4"."apart_ns" IS NOT NULL
              ) AS "t5"
            ) AS "t6"
          ) AS "t7"
        ) AS "t8"
      ) AS "t9"
    ) AS "t10"
  ) AS "t11"
  GROUP BY
    1,
    2,
    3,
    4
) AS "t12"
