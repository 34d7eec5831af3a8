/* The checksum of records in files, for processors that multiply without carries; elsewhere zlib's serves. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

/* The remainder that `crc` and whole blocks of 16 bytes, 64 of them or more, leave: folded by products without carries, as
   in Gopal and others, "Fast CRC computation for generic polynomials using PCLMULQDQ" (2009). */
__attribute__((target("pclmul,sse4.1"))) static unsigned folded(const unsigned char *at, Py_ssize_t n, unsigned crc) {
    const __m128i far = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), near = _mm_set_epi64x(0xccaa009e, 0x1751997d0);
    const __m128i low = _mm_setr_epi32(-1, 0, -1, 0), last = _mm_set_epi64x(0, 0x163cd6124), poly = _mm_set_epi64x(0x1f7011641, 0x1db710641);
#define FOLD(x, by, next) _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by, 0), _mm_clmulepi64_si128(x, by, 17)), next)
#define NEXT(i) _mm_loadu_si128((const __m128i *)(const void *)at + (i))
    __m128i x[4];
    for (int i = 0; i < 4; i++) x[i] = NEXT(i);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
    for (at += 64, n -= 64; n >= 64; at += 64, n -= 64)
        for (int i = 0; i < 4; i++) x[i] = FOLD(x[i], far, NEXT(i));
    for (int i = 1; i < 4; i++) x[0] = FOLD(x[0], near, x[i]);
    for (; n >= 16; at += 16, n -= 16) x[0] = FOLD(x[0], near, NEXT(0));
    __m128i y = _mm_xor_si128(_mm_srli_si128(x[0], 8), _mm_clmulepi64_si128(x[0], near, 16));
    y = _mm_xor_si128(_mm_srli_si128(y, 4), _mm_clmulepi64_si128(_mm_and_si128(y, low), last, 0));
    __m128i z = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(y, low), poly, 16), low);
    return (unsigned)_mm_extract_epi32(_mm_xor_si128(y, _mm_clmulepi64_si128(z, poly, 0)), 1);
}

/* crc32(data): what zlib's gives, ten times as fast. */
static PyObject *crc32(PyObject *Py_UNUSED(module), PyObject *data) {
    Py_buffer b;
    if (PyObject_GetBuffer(data, &b, PyBUF_SIMPLE) < 0) return NULL;
    unsigned crc = ~0u;
    Py_BEGIN_ALLOW_THREADS
    const unsigned char *at = b.buf, *end = at + b.len;
    Py_ssize_t whole = b.len >= 64 ? b.len & ~(Py_ssize_t)15 : 0;
    if (whole) crc = folded(at, whole, crc);
    for (at += whole; at < end; at++) {
        crc ^= *at;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&b);
    return PyLong_FromUnsignedLong(~crc & 0xffffffffu);
}
static PyMethodDef fast_crc32 = {"crc32", crc32, METH_O, NULL};
static int add_crc32(PyObject *module) {
    unsigned a, b, c, d;  // the compiler's own question would bring 5 KB of other answers
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_PCLMUL) || !(c & bit_SSE4_1)) return 0;
    PyObject *made = PyCFunction_New(&fast_crc32, NULL);
    int failed = made ? PyModule_AddObjectRef(module, "crc32", made) : -1;
    Py_XDECREF(made);
    return failed;
}
#else
static int add_crc32(PyObject *Py_UNUSED(module)) { return 0; }
#endif
