"""Tools that answer 'why does it not learn': each is asked for, tries things on copies, and gives a result with findings."""
