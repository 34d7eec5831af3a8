"""mortice.quasirandom: Sobol' points, which fill a cube more evenly than random ones."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import mortice
from mortice.interop import numpy_for

__all__ = ["SobolEngine"]

# A number for each dim from the second on, in base 36: a primitive polynomial over GF(2) followed by the first direction
# numbers m_1, m_2, ... of S. Joe and F. Y. Kuo (search criterion D(6)), each odd and below 2^k, so k - 1 bits.
_DIRECTIONS = """
3 f 2k 2w y1 19y tgo wma 11i1 17nk 1amt 1ctr 1bji0 1rzuy 1wjw8 20f36 24zik 28z0e 4kroqb 4s9v4y 4ytqan 5226fu 5grx4l
5t70jz 5xxhr2 6fy2si 6n2dz4 6q47rx 71po5w 7cip7f 7f2ix4 7ykof6 8as0li 8dfrul 8kyfmg 8spqkw z80bx4q 10z9veeo 116uvurg
154yfpms 17cfnqc6 17w082sn 1834wxd2 18k292ku 19mdti70 1caoxtib 1d2pvhxp 1gfc508g 1jmaxil4 1l7l2i3n 1o4f7dgq 1psvg20y
cwl9b2l7z d5a2rw4yq d9yikb9uz dkx8rrfuh dps51dv8b enbn271yt esm7crjjz f1vtspu26 f6cibcyzt fdnjlvkuo fisxqfclc
frg4rmqvm g41ridb4x gg6ejdn41 gi3juawod gr3x9ibyd gxo15clbn h39w9xanz himrpp2t2 hkj6o8x3k htbs7gyyd ifuy2f3cc
ijjnooxe8 j6neah5cn j8c6ncjyw jhcgqghaw jkej0ohu2 jwl4s5ob3 k5ad9wvw0 kncc4x01z kxzukr7zt l2vmxqhg1 lbgekp5wl
ldhnovqoy lj3xhrsgw lte1sh9tz ly3y4fvel m7f3jsr1t n4jvov2dz n89u58d66 nkkuo2vtg nnnv34ytq nq4e6rx4a nwlgou7ho
o0eqdz4vw o97z3jnxr oe1w9ol7w ou6rnj3ux 9y30ih0rw11 a48zacgr94j a8gewu006jv aaf5rm2l8xn au2znhutmk0 axhdmydc66q
b3jiizaahze b729ftos7dg br71bguoog4 bxjiizuqb0f c2w8iw5z5if c76thddzmkx cb8t476jhey cg583w4div4 ckefsfv6duy
cnme0tyb6s3 csq1la7g02p cwlf22afs2q cyrjlx9qc06 d5wk07rz69e dctgxw8cmxp dllbir0a8ni dp7nbn07pop drukxs1bg3c
dvi11ahutd5 e8pcnaqbbxi ej0dx5hjejq epc2euf4vzs eqh5g1appco eys6rujc010 ezln5m9nqtd f55pepqldux fbbn8eqor5u
ffoh3ubj76s fjlkuql9s9k fnpyoo7du5t fy3i30xxcsr g07ppzv2zhr g3s7p2z1axl gj29c7v4oht gn13dcvbetq gtdp3eih08b
gxnf24rg8to h80jarstswx hgvck36wclp hj64ij9qdq2 hkb7yqrfd4e hstdr8lx0xg hxh0v3jrdet hztbwr8txye i2adzmv8ij1
i3v8i9wvx9h i78v6kxqeum igcs2lqrvu2 ilyly3e68sg iny8amr6c4p iydw3xh3ac5 jcuew9b5gwf jl639oeng0q jn3lqxqbk9z
fm676gxitq8yy fr5m1x2ji9owz fwgv5qxp8jqlu fx0ft64dp97f0 g465cpq7518j1 gbttzr2inktvr gcayu8atp3z7w gfsaqgel2wu85
giggny27t6mfx gncf1oozuunfw gpfiecavryd2m gsbqtqon0zg1j guzx1in6zb5l4 gx635gsktaw1d h5dttes5c04tn h5x25pecl6daa
ha880b45hrmb9 hbw8meikr2vsr hcy7nixc71kuy hfxkrjidt4j5a hmh0yiz40yetx ho2ol9xrhogu7 hssz1580tqq16 htxta3x6kpexk
hz2m3eujgq6f0 hzh2ca0il9mi9 i1o3xg8qtrnia i2wfn6ksbxurk i4w1vbtpa3bp9 i7soi2ninxhj7 iec3lvyjc6mf1 ieyxyn6btqtso
iho4xpph8l46n iikbpibj0s4k8 ilullaq88cnqd itqycu8l66efz iuajkn00ytdur ixl336qrw1pkj j1ah2hfsp6ijm j66rf6tnj60jv
j9i8fltvhaz5y jefjmyod4hoh7 jh2pfqgh3pc72 jinzd95jdw0tl jm7m2nutsf2oy jmmx1ypfhow1u js2v5n7xg0eel k0vwkrc6afoe6
k7f3qm7ieofll kanrw7eokxdid ke166v4kjov14 kfmmb6dtyezu6 khalgbjna5xez kkiwvl77q3xdd knx5owcxtv5aa kqimg3o99tc7s
krkm78c0kmaez ktu5gx46thqbs kuddsfomknxut l333cfi94q9i3 l5vys3e8u8djk l8ocvqv4u6gg3 la8sz37b7hsv8 lax4ldk1s5dvd
ldoyamosjxt32 lfvgocll9jbch lhf0twq87w1r9 ljly8ejmuxnuj lswm2b06b9f4y lw5n4sa7f06sc lwozfjcamo7oa lze6u8egpb0il
m37yt4ima2z2q m4uzvmrggb3fc m6iur1xwyh4oq m9edxdauehh4p mdb5tm9v24v8p mg1msmdlvlwzw mh1stmf7ne80x mj2vwdocxk6x7
mjomwvtqbvt8f mqyijx9ie9u0m mt1xh4vogmem3 mumi8732vhw54 my33nz0dis6zo n2xvrqetmm499 n3g3vxwh0kbz3 n69vcru5454u0
n7x58gtl4bju2 ng5maspoztfg8 ngigb4wyonis0 njxkcii37d3yf nlhny5cxo6mv3 o0pu2lg64ju8n o3gliwozy4tt7
""".split()


def _words(count: int) -> list[int]:
    """Return so many numbers as those above; more of them, which would be half a megabyte here, SciPy has."""
    words = [int(word, 36) for word in _DIRECTIONS[:count]]
    if count > len(words):
        if (scipy := find_spec("scipy")) is None:
            raise ValueError(
                f"SobolEngine: expected a dimension from 1 to {len(words) + 1}, or SciPy, which has the table for more; got "
                f"{count + 1}. Install SciPy."
            )
        path = os.path.join(os.path.dirname(scipy.origin or ""), "stats", "_sobol_direction_numbers.npz")
        table = numpy_for("the table of many dims").load(path)
        rows = slice(len(words) + 1, count + 1)
        for word, m in zip(table["poly"][rows].tolist(), table["vinit"][rows].tolist()):
            for k in range(word.bit_length() - 1):
                word = word << k | m[k] >> 1
            words.append(word)
    return words


class SobolEngine:
    """Draw the points of a Sobol' sequence, scrambled on request.

    Differs from torch: of more than 256 dims where SciPy is installed, whose table is read.

    Args:
        dimension: of the cube, 21201 at most.
        scramble: shift the points, and mix their digits, at random.
        seed: of the scrambling; the default generator's numbers are used without one.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"SobolEngine: expected a dimension from 1 to {self.MAXDIM}; got {dimension}.")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        rows = [[1 << (self.MAXBIT - 1 - i) for i in range(self.MAXBIT)], *map(self._row, _words(dimension - 1))]
        self.sobolstate = mortice.tensor(rows)
        self.shift = mortice.zeros(dimension, dtype=mortice.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _row(self, left: int) -> list[int]:
        """Return the direction numbers of a dim, the first bit of each fraction being the highest."""
        degree = next(s for s in range(1, 32) if s + 1 + s * (s - 1) // 2 == left.bit_length())
        m: list[int] = []
        for k in range(degree, 0, -1):
            m.insert(0, (left & ((1 << (k - 1)) - 1)) << 1 | 1)
            left >>= k - 1
        for k in range(degree, self.MAXBIT):
            new = m[k - degree]
            for i in range(degree):
                if left >> i & 1:
                    new ^= m[k - degree + i] << (degree - i)
            m.append(new)
        return [v << (self.MAXBIT - 1 - k) for k, v in enumerate(m)]

    def _scramble(self) -> None:
        g = None if self.seed is None else mortice.Generator().manual_seed(self.seed)
        bits, n = self.MAXBIT, self.dimension
        powers = 2 ** mortice.arange(bits)
        self.shift = (mortice.randint(2, (n, bits), generator=g) * powers).sum(-1)
        # Each digit becomes itself plus a random choice of the digits before it.
        mixing = mortice.randint(2, (n, bits, bits), generator=g).tril(-1) + mortice.eye(bits, dtype=mortice.int64)
        digits = (self.sobolstate[:, None, :] >> powers.flip(0).log2().long()[:, None]) & 1
        self.sobolstate = ((mixing @ digits % 2) * powers.flip(0)[:, None]).sum(1)

    def _at(self, numbers: Any) -> Any:
        """Return the points of some numbers, as integers."""
        gray = (numbers ^ (numbers >> 1))[:, None]
        points = self.shift.expand(len(numbers), self.dimension)
        for i in range(self.MAXBIT):
            points = points ^ ((gray >> i & 1) * self.sobolstate[:, i])
        return points

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """Return the next n points, of shape (n, dimension)."""
        points = self._at(mortice.arange(self.num_generated, self.num_generated + n))
        self.num_generated += n
        self.quasi = points[-1].clone() if n else self.quasi
        made = points.to(mortice.get_default_dtype() if dtype is None else dtype) / 2**self.MAXBIT
        return made if out is None else out.resize_(made.shape).copy_(made)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """Return the next 2^m points, which with those before must be a power of two."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"draw_base2: the points drawn so far and these must be a power of 2; got {self.num_generated} + 2**{m} = "
                f"{total}. Use draw()."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.quasi, self.num_generated = self.shift.clone(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over n points."""
        self.num_generated += n
        self.quasi = self._at(mortice.tensor([max(self.num_generated - 1, 0)]))[0]
        return self

    def __repr__(self) -> str:
        scrambled = f", scramble={self.scramble}" if self.scramble else ""
        seeded = "" if self.seed is None else f", seed={self.seed}"
        return f"SobolEngine(dimension={self.dimension}{scrambled}{seeded})"
