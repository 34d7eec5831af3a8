// The error function and its relatives, and the gamma functions, on whole vectors; see vmath.hpp.
//
// erf is made for speed. The others follow the default bodies of the kernels (mortice.backends.elementwise_special), from
// which their coefficients are.
#pragma once
#include "vtrig.hpp"

namespace mortice::ISA {

// ---- the error function ----

// erf: an odd polynomial near 0, and 1 - exp(-a q(a)) beyond, where the rounding of a q(a) does not show.
SHARED vf v_erf(vf x) {
    vf a = vmin(num<vf>(4.0), v_abs(x)), z = a * a;
    vf near = a * poly(z, 1.12837923f, -0.376126319f, 0.112836897f, -0.0268590935f, 0.00520027708f, -0.000813416264f,
                       8.33410959e-05f);
    vf q = poly(a, 1.12852097f, 0.635769606f, 0.104979239f, -0.022372039f, 0.00274158642f, 1.93249307e-05f, -5.92289252e-05f,
                6.06804178e-06f);
    vf far = num<vf>(1) - exp_normal(-a * q);
    vf y = flip_sign(select(a < num<vf>(0.86f), near, far), sign_of(x));
    return select(x == x, y, x);
}
SHARED vd v_erf(vd x) {
    vd a = vmin(num<vd>(5.95), v_abs(x)), z = a * a, t = a - num<vd>(3.25);
    vd near = poly(z, 0.12837916709551256, -0.3761263890318352, 0.11283791670944185, -0.026866170643111597,
                   0.005223977606119715, -0.0008548325929378773, 0.00012055293578917283, -1.492471234196851e-05,
                   1.6447132074226744e-06, -1.6206317657115439e-07, 1.371099736756755e-08, -7.779500223584706e-10);
    vd q = poly(t, 3.8019228791341644, 0.9174884999914912, 0.013844046116051651, -0.00235213986468439,
                0.0003905137220309668, -6.183718669976814e-05, 9.083197232692297e-06, -1.1724194770966994e-06,
                1.1321439751882182e-07, -9.620227548779955e-09, -6.8658792312313195e-09, 9.502996987294043e-10,
                1.615790089423874e-09, 1.410258894012604e-09, 4.923891299953577e-10, 9.999905685081904e-11,
                8.478150580788111e-12);
    vd far = num<vd>(1) - exp_normal(-a * q);
    vd y = flip_sign(select(a < num<vd>(1), fma(a, near, a), far), sign_of(x));
    return select(x == x, y, x);
}

// The normal distribution's upper tail at a >= 0, (1 - erf(a / sqrt(2))) / 2, to an absolute error of 2e-8: a polynomial is
// its logarithm to base 2.
INLINE vf normal_tail(vf a) {
    vf b = vmin(num<vf>(13.5), a);
    vf t = poly_pairs(b, -0.459202945f, -0.0525028706f, 0.00705048675f, -9.60683756e-05f, -0.000227823664f, 6.01023967e-05f,
                      -8.10217352e-06f, 6.24126869e-07f, -2.58329713e-08f, 4.44447396e-10f);
    t = fma(fma(t, b, num<vf>(-1.15110612f)), b, num<vf>(-0.99999994f));  // what is large last, for less is rounded
    t = vmax(num<vf>(-125.0), t);
#if defined(__AVX512F__)
    vf r = (vf)_mm512_maskz_reduce_ps(0xffff, (__m512)t, 0), n = t - r;
#else
    vf n = nearest(t), r = t - n;
#endif
    vf p = fma(r, poly_pairs(r, 0.693147004f, 0.240222394f, 0.0555073619f, 0.00967172347f, 0.00132644514f), num<vf>(1));
    vf y = scale_normal(p, n, power_of_2(n));
    return as_real<vf>(ints(y) & ~(a > num<vf>(13.5)));
}
// The distribution itself.
INLINE vf v_normal(vf x) {
    vf tail = normal_tail(v_abs(x));
    return select(x > num<vf>(0), num<vf>(1) - tail, tail);
}
INLINE vd v_normal(vd x) { return fma(v_erf(x * num<vd>(0.70710678118654752)), num<vd>(0.5), num<vd>(0.5)); }

INLINE vf v_gelu(vf x) {
    vf a = v_abs(x), tail = normal_tail(a);
    // Of an infinite x nothing is left to take away, while minus infinity times nothing is nan, as by the formula.
    vf size = select(x > num<vf>(13.5), num<vf>(13.5), a);
    return vmax(num<vf>(0), x) - size * tail;
}
INLINE vd v_gelu(vd x) { return x * v_normal(x); }

// (erf(x) - x) / x where |x| <= 1/2
template <class V> INLINE V erf_rest(V x) {
    V z = x * x;
    if constexpr (is_single<V>) return poly(z, 0.1283791656f, -0.3761260901f, 0.1128283143f, -0.02675773274f, 0.004719082567f);
    else
        return poly(z, 0.12837916709551256, -0.37612638903183476, 0.11283791670925353, -0.026866170632887928,
                    0.00522397737302147, -0.0008548297753674966, 0.00012053335124353741, -1.4845849259707869e-05,
                    1.4725865480556744e-06);
}

// exp(x**2) erfc(x) where x >= 0.46
template <class V> SHARED V erfcx_far(V x) {
    V c = num<V>(2.0f, 4.0), t = (x - c) / (x + c), p;
    t = select(x == num<V>(__builtin_inf()), num<V>(1), t);
    if constexpr (is_single<V>)
        p = poly(t, 1.276978381f, -0.09276382612f, -0.1660303025f, 0.1640510307f, -0.0542228031f, -0.008028798606f,
                 0.008745703776f, 0.001232727885f, -0.001527158747f, -0.0003319293854f, 0.0002761485399f);
    else
        p = poly(t, 1.2329951186255526, -0.13962111684056253, 0.015379652102620467, 0.0680970542546924,
                 -0.10103906603636317, 0.0937328349984149, -0.06633036581050444, 0.03716751553546256,
                 -0.016197734082227373, 0.005031970005850649, -0.0007577730909745659, -0.00019925690860485306,
                 0.00015062069780480338, -2.4398210172972927e-05, -1.1218964505710102e-05, 5.706733362701008e-06,
                 2.877025857665674e-07, -8.19700634763782e-07, 8.213761803087083e-08, 1.033047793704518e-07,
                 -2.3111228570602045e-08, -9.636754390628351e-09, 3.389301783205648e-09);
    return p * num<V>(0.5) / (x + num<V>(0.5));  // twice x may be infinite
}

// exp(sign x**2) for x >= 0, as accurate as exp although the square is rounded: that of a coarse x is not, and of the small
// rest a few terms of the series are enough.
template <class V> RARE V exp_square(V x, double sign) {
    V y = select(x > num<V>(15.0f, 31.0), num<V>(15.0f, 31.0), x);
    V coarse = nearest(y * num<V>(256.0f, 65536.0)) * num<V>(0x1p-8f, 0x1p-16);
    V rest = (y - coarse) * (y + coarse) * num<V>(sign);
    V part = rest * poly(rest, 1.0, 0.5, 1.0 / 6, 1.0 / 24), power = v_exp(coarse * coarse * num<V>(sign));
    return sign < 0 ? fma(power, part, power) : power * (part + num<V>(1));  // the latter may be infinite
}

template <class V> INLINE V erfc_far(V x) { return exp_square(x, -1) * erfcx_far(x); }

template <class V> INLINE V v_erfc(V x) {
    V a = v_abs(x), far = erfc_far(select(a < num<V>(0.5), num<V>(0.5), a));
    far = select(x < num<V>(0), num<V>(2) - far, far);
    return select(a < num<V>(0.5), num<V>(1) - fma(x, erf_rest(x), x), far);
}

template <class V> INLINE V v_erfcx(V x) {
    V a = v_abs(x), square = exp_square(a, 1), far = erfcx_far(select(a < num<V>(0.5), num<V>(0.5), a));
    far = select(x < num<V>(0), fma(square, num<V>(2), -far), far);
    return select(a < num<V>(0.5), square * (num<V>(1) - fma(x, erf_rest(x), x)), far);
}

// erfinv(x) / x is a polynomial of w = -log(1 - x**2) near 0, and of its square root beyond.
INLINE vf erfinv_near(vf w) {
    return poly(w - num<vf>(2.5), 1.50140936f, 0.246640279f, -0.00417739288f, -0.00125272639f, 0.000218349386f, -4.97241969e-6f,
                -3.46398527e-6f, 4.68131348e-7f, 2.33359672e-8f, -8.93192597e-9f);
}
INLINE vf erfinv_far(vf s) {
    return poly(s - num<vf>(3.1180339887498948), 2.95132858f, 1.00361804f, 0.00716025969f, -0.00537893377f, 0.00387470083f,
                -0.00270852748f, 0.00131747686f, -8.67278189e-5f, -0.000176285934f);
}
INLINE vd erfinv_near(vd w) {
    return poly(w - num<vd>(3.125), 1.6536545626831027, 0.24015818242558834, -0.0060336708714268511, -0.00074070253415464312,
                       0.00018673420801981187, -1.3882523393957482e-5, -1.3654691758785657e-6, 4.2347881682224596e-7,
                       -2.9070391275641319e-8, -4.1126604371632182e-9, 1.051223377050429e-9, -5.4143032839195044e-11,
                       -1.2978805369932566e-11, 2.6305268312595183e-12, -8.0719259389900407e-14, -4.0020031087558495e-14,
                       6.5213335115022385e-15, -3.9401881223043201e-17, -1.2215637192404172e-16, 1.5510787009902525e-17,
                       6.0750507020724139e-19, -3.4734793888538035e-19, 1.9992599888615349e-20, 3.1940155481362711e-21,
                       -3.5932028927020695e-22);
}
INLINE vd erfinv_far(vd s) {
    vd middle = poly(s - num<vd>(3.25), 3.0838856104922207, 1.0052589676941592, 0.0053709145535581983, -0.0037512085075638538,
                       0.0024914420976198812, -0.0016882755561681803, 0.00095328935211181778, -0.0003550375186306976,
                       2.4031363245440548e-5, 6.8284840522929234e-5, -4.731952918337189e-5, 1.2475343474376931e-5,
                       2.9273722115986926e-6, -4.0139463981902919e-6, 1.4958263152984917e-6, 1.8323999881328578e-8,
                       -2.6860975725571461e-7, 9.0719505710299225e-8, -3.8310399460724114e-10);
    vd far = poly(s - num<vd>(5.035), 4.8852667386412771, 1.0102899771634978, -0.00016074725342923991, -0.00020462805300640374,
                       7.2632667813889934e-5, -1.8756307510091507e-5, 4.2903832396653329e-6, -9.3173372307330332e-7,
                       2.0926499533291381e-7, -5.8350202277287426e-8, 2.3752064443881323e-8, -1.2296601903297242e-8,
                       6.3538531359806636e-9, -2.864109617110433e-9, 1.1251563296404369e-9, -4.0252144940178626e-10,
                       7.5821908414533084e-11, 3.2629340543728477e-11, -1.6775116020549905e-11);
    return select(s > num<vd>(4), far, middle);
}
template <class V> INLINE V v_erfinv(V x) {
    V a = v_abs(x), one = num<V>(1), w = -rare_log((one - a) * (a + one)), y = erfinv_near(w);
    ints_of<V> near = w < num<V>(5.0f, 6.25);
    if (any_lane(~near)) y = select(near, y, erfinv_far(v_sqrt(w)));
    return select(a == one, flip_sign(num<V>(__builtin_inf()), sign_of(x)), x * y);
}

// ---- the gamma functions ----

// x - the nearest whole number, for any x
template <class V> INLINE V from_nearest(V x) {
    V a = v_abs(x), magic = num<V>(0x1p23f, 0x1p52), whole = select(a < magic, (a + magic) - magic, a);
    return flip_sign(a - whole, sign_of(x));
}
template <class V> INLINE ints_of<V> is_pole(V x) {
    ints_of<V> whole = (v_abs(x) >= num<V>(0x1p23f, 0x1p52)) | (from_nearest(x) == num<V>(0));
    return whole & (x <= num<V>(0));
}

template <class V> SHARED V lgamma_positive(V x) {
    V one = num<V>(1), eight = num<V>(8);
    ints_of<V> small = x < one, large = ~(x < eight);
    V y = select(small, x + one, select(large, one, x)), product = one;
    for (int i = 0; i < 6; i++) {
        ints_of<V> above = y > num<V>(2.5);
        y = select(above, y - one, y);
        product *= select(above, y, one);
    }
    product = select(small, x, product);
    V log = rare_log(select(large, x, product));
    // x + 1 may have been rounded, and near 1 its distance from 2 matters.
    V s = select(small, x, y - one), top, bottom, tail;
    V inverse = one / x, w = inverse * inverse;
    if constexpr (is_single<V>) {
        top = poly(s, 0.5772156633f, 0.6780612819f, 0.1842236081f, 0.005245316188f, -0.000135785751f);
        bottom = poly(s, 1.0f, 1.599597113f, 0.7295278723f, 0.08777096692f);
        tail = poly(w, 0.08333330939f, -0.002765501802f);
    } else {
        top = poly(s, 0.5772156649015329, 1.86098081549575, 2.3635332465382795, 1.5039306323240016, 0.5046254359063024,
                   0.08615496862055282, 0.006587735783867843, 0.00016347778605451383, 2.825921424862604e-07);
        bottom = poly(s, 1.0, 3.6489518772461453, 5.375823303013315, 4.106494651490621, 1.7395350918804513,
                      0.4058072147401558, 0.04870926129451927, 0.002566612704336833, 4.0169597554256417e-05);
        tail = poly(w, 0.0833333333333333, -0.002777777777606244, 0.0007936506649487538, -0.0005952025951698658,
                    0.000837283450542408, -0.0016526004301122236);
    }
    V centre = s * (s - one) * (top / bottom);
    V near = select(small, centre - log, centre + log);
    V far = (x - num<V>(0.5)) * (log - one) + fma(inverse, tail, num<V>(0.41893853320467274));
    return select(large, far, near);
}

template <class V> INLINE V v_lgamma(V x) {
    ints_of<V> negative = x < num<V>(0);
    V pi = num<V>(0x1.921fb54442d18p+1), endless = num<V>(__builtin_inf());
    V y = lgamma_positive(select(negative, num<V>(1) - x, x));
    if (any_lane(negative)) {
        // |sin(pi x)| / pi, which near 0 is |x|
        V a = v_abs(x), slope = select(a < num<V>(0x1p-60), a, v_sin(v_abs(from_nearest(x)) * pi) / pi);
        y = select(negative, -rare_log(slope) - y, y);
    }
    return select(is_pole(x) | (v_abs(x) == endless), endless, y);
}

template <class V> SHARED V digamma_positive(V x) {
    V one = num<V>(1);
    ints_of<V> small = x < one, large = ~(x < num<V>(8));
    V y = select(small, x + one, select(large, one, x)), total = select(small, -one / x, num<V>(0));
    V sum = num<V>(0);
    for (int i = 0; i < 6; i++) {
        ints_of<V> above = y > num<V>(2);
        y = select(above, y - one, y);
        sum += select(above, one / y, num<V>(0));
    }
    total += sum;
    V s = y - one, inverse = one / x, z = inverse * inverse, slope, tail;
    if constexpr (is_single<V>) {
        slope = poly(s, 1.250380136f, 1.126160753f, 0.207897002f, 0.002426444255f) /
                poly(s, 1.0f, 1.584201418f, 0.647353047f, 0.06252359773f);
        tail = poly(z, 0.08333321417f, -0.008272198549f);
    } else {
        slope = poly(s, 1.2503801375034054, 1.8675925104074453, 0.9711327526262392, 0.21631407251432455,
                     0.01996408274151926, 0.0005811135063985677, 1.0894678528383955e-06) /
                poly(s, 1.0, 2.1771665986671342, 1.6630736963665909, 0.5710455727133128, 0.09111902253303285,
                     0.006100975692434821, 0.00012043151172286901);
        tail = poly(z, 0.08333333333333287, -0.008333333331168556, 0.0039682523428407205, -0.004166217650565792,
                    0.0075190882223774924, -0.017711160221389632);
    }
    V root = (y - num<V>(1.4616321325302124f, 1.4616321449683622)) - num<V>(1.2438149938918909e-08f, 9.549995429965697e-17);
    V near = fma(root, slope, total);
    V far = rare_log(x) - fma(inverse, num<V>(0.5), z * tail);
    return select(large, far, near);
}

template <class V> INLINE V v_digamma(V x) {
    ints_of<V> negative = x < num<V>(0);
    V pi = num<V>(0x1.921fb54442d18p+1);
    V y = digamma_positive(select(negative, num<V>(1) - x, x));
    if (any_lane(negative)) y = select(negative, y - pi / v_tan(from_nearest(x) * pi), y);
    y = select(is_pole(x), num<V>(__builtin_nan("")), y);
    return select(x == num<V>(0), num<V>(-1) / x, y);
}

}  // namespace mortice::ISA
