"""The numbers of annotations in their external ids."""

ANNOTATION_BITS = 40
"""The low bits of an annotation's external id: the number of its row in the session, from 1 on."""
