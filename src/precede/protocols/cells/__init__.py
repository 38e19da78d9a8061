"""Hosts in radio cells whose stations act for them (prs1997, section 9); shared by CK and prs_mobile."""
