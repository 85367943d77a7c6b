"""Colors of roles as 0xRRGGBB, for a light and a dark page, in the order of `Role`.

The hues are the Okabe-Ito set, which people with any common kind of color blindness can tell apart. Lightness is
adjusted to contrast with a white and with a near-black page.
"""

ROLE_COLORS = (
    (0x8D9299, 0x8D9299),  # unknown: gray
    (0x0072B2, 0x2F8FD0),  # parameter: blue
    (0x56B4E9, 0x7CC7F2),  # optimizer state: sky
    (0x5D6BD0, 0x8490EE),  # input: indigo
    (0xD55E00, 0xE9742B),  # gradient: vermillion
    (0xE69F00, 0xF0B429),  # activation: orange
    (0xCC79A7, 0xD98BB8),  # output: pink
    (0xC8B400, 0xE8DC52),  # constant: yellow, darkened
    (0x009E73, 0x1FB68A),  # temporary: green
    (0x7B5EA7, 0x9D82C9),  # executable: violet
    (0x96755B, 0xB08C70),  # thread-local: brown
    (0x00606B, 0xA5EEF0),  # state: dark teal
)
