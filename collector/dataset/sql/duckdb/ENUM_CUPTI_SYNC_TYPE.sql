SELECT
  "t0"."id",
  "t0"."label",
  "t0"."label" AS "name"
FROM "enum_sync_kind" AS "t0"
