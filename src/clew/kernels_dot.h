/* The part of kernels.c that multiplies rows with vectors on x86. */

#if defined(__x86_64__)
/* The sum of 32 lanes, in the order of `add_lanes`. */
__attribute__((target("avx2"))) static inline float add_eights(__m256 a, __m256 b, __m256 c,
                                                               __m256 d)
{
    const __m256 eight = _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

__attribute__((target("avx2,fma,f16c"))) static inline float
dot_one_by_f16c(const uint16_t *row, const float *vector, int64_t width)
{
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) {
        const __m128i *held = (const __m128i *)(row + i);
        const float *with = vector + i;
        a = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_loadu_si128(held)), _mm256_loadu_ps(with), a);
        b = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_loadu_si128(held + 1)), _mm256_loadu_ps(with + 8), b);
        c = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_loadu_si128(held + 2)), _mm256_loadu_ps(with + 16), c);
        d = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_loadu_si128(held + 3)), _mm256_loadu_ps(with + 24), d);
    }
    for (; i < width; i++)
        a = _mm256_add_ps(a, _mm256_castps128_ps256(_mm_set_ss(widen(row[i]) * vector[i])));
    return add_eights(a, b, c, d);
}

__attribute__((target("avx2,fma"))) static inline float
dot_one_by_avx2(const float *row, const float *vector, int64_t width)
{
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) {
        const float *held = row + i, *with = vector + i;
        a = _mm256_fmadd_ps(_mm256_loadu_ps(held), _mm256_loadu_ps(with), a);
        b = _mm256_fmadd_ps(_mm256_loadu_ps(held + 8), _mm256_loadu_ps(with + 8), b);
        c = _mm256_fmadd_ps(_mm256_loadu_ps(held + 16), _mm256_loadu_ps(with + 16), c);
        d = _mm256_fmadd_ps(_mm256_loadu_ps(held + 24), _mm256_loadu_ps(with + 24), d);
    }
    for (; i < width; i++)
        a = _mm256_add_ps(a, _mm256_castps128_ps256(_mm_set_ss(row[i] * vector[i])));
    return add_eights(a, b, c, d);
}

__attribute__((target("avx2,fma"))) static void
dot_floats_by_avx2(const float *matrix, int64_t width, const int64_t *rows, int64_t count,
                   const float *vectors, int64_t number, float *out)
{
    for (int64_t at = 0; at < count; at++) {
        fetch_ahead(matrix, rows, at, count, width * (int64_t)sizeof(float));
        for (int64_t which = 0; which < number; which++)
            out[which * count + at] =
                dot_one_by_avx2(matrix + rows[at] * width, vectors + which * width, width);
    }
}

/* The same of two vectors: what is read is widened once. */
__attribute__((target("avx2,fma,f16c"))) static inline void
dot_two_by_f16c(const uint16_t *row, const float *one, const float *other, int64_t width,
                float *first, float *second)
{
    __m256 sum[8];
    for (int part = 0; part < 8; part++)
        sum[part] = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES)
        for (int part = 0; part < 4; part++) {
            const int64_t at = i + 8 * part;
            const __m256 held = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row + at)));
            sum[part] = _mm256_fmadd_ps(held, _mm256_loadu_ps(one + at), sum[part]);
            sum[4 + part] = _mm256_fmadd_ps(held, _mm256_loadu_ps(other + at), sum[4 + part]);
        }
    for (; i < width; i++) {
        const float held = widen(row[i]);
        sum[0] = _mm256_add_ps(sum[0], _mm256_castps128_ps256(_mm_set_ss(held * one[i])));
        sum[4] = _mm256_add_ps(sum[4], _mm256_castps128_ps256(_mm_set_ss(held * other[i])));
    }
    *first = add_eights(sum[0], sum[1], sum[2], sum[3]);
    *second = add_eights(sum[4], sum[5], sum[6], sum[7]);
}

__attribute__((target("avx2,fma,f16c"))) static void
dot_halves_by_f16c(const uint16_t *matrix, int64_t width, const int64_t *rows,
                               int64_t count, const float *vectors, int64_t number, float *out)
{
    for (int64_t at = 0; at < count; at++) {
        fetch_ahead(matrix, rows, at, count, width * (int64_t)sizeof(uint16_t));
        const uint16_t *row = matrix + rows[at] * width;
        int64_t which = 0;
        for (; which + 2 <= number; which += 2)
            dot_two_by_f16c(row, vectors + which * width, vectors + (which + 1) * width, width,
                            out + which * count + at, out + (which + 1) * count + at);
        if (which < number)
            out[which * count + at] = dot_one_by_f16c(row, vectors + which * width, width);
    }
}

/* The halves of 16 lanes each, added up in the order of `add_lanes`. */
__attribute__((target("avx512f"))) static inline float add_sixteens(__m512 low, __m512 high)
{
    const __m512 both = _mm512_add_ps(low, high);
    const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(both), 1));
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(both), upper);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* Dot products of one row with two vectors (perhaps the same one): as with registers half as long,
   to the last bit. */
__attribute__((target("avx512f"))) static inline void
dot_two_by_avx512(const uint16_t *row, const float *one, const float *other, int64_t width,
                  float *first, float *second)
{
    __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) {
        const __m256i *held = (const __m256i *)(row + i);
        const __m512 low = _mm512_cvtph_ps(_mm256_loadu_si256(held));
        const __m512 high = _mm512_cvtph_ps(_mm256_loadu_si256(held + 1));
        a = _mm512_fmadd_ps(low, _mm512_loadu_ps(one + i), a);
        b = _mm512_fmadd_ps(high, _mm512_loadu_ps(one + i + 16), b);
        c = _mm512_fmadd_ps(low, _mm512_loadu_ps(other + i), c);
        d = _mm512_fmadd_ps(high, _mm512_loadu_ps(other + i + 16), d);
    }
    for (; i < width; i++) {
        const float held = widen(row[i]);
        a = _mm512_add_ps(a, _mm512_zextps128_ps512(_mm_set_ss(held * one[i])));
        c = _mm512_add_ps(c, _mm512_zextps128_ps512(_mm_set_ss(held * other[i])));
    }
    *first = add_sixteens(a, b);
    *second = add_sixteens(c, d);
}

__attribute__((target("avx512f"))) static inline float
dot_one_by_avx512(const uint16_t *row, const float *vector, int64_t width)
{
    __m512 a = _mm512_setzero_ps(), b = a;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) {
        const __m256i *held = (const __m256i *)(row + i);
        a = _mm512_fmadd_ps(_mm512_cvtph_ps(_mm256_loadu_si256(held)), _mm512_loadu_ps(vector + i), a);
        b = _mm512_fmadd_ps(_mm512_cvtph_ps(_mm256_loadu_si256(held + 1)),
                            _mm512_loadu_ps(vector + i + 16), b);
    }
    for (; i < width; i++)
        a = _mm512_add_ps(a, _mm512_zextps128_ps512(_mm_set_ss(widen(row[i]) * vector[i])));
    return add_sixteens(a, b);
}

__attribute__((target("avx512f"))) static void
dot_halves_by_avx512(const uint16_t *matrix, int64_t width, const int64_t *rows, int64_t count,
                     const float *vectors, int64_t number, float *out)
{
    for (int64_t at = 0; at < count; at++) {
        fetch_ahead(matrix, rows, at, count, width * (int64_t)sizeof(uint16_t));
        const uint16_t *row = matrix + rows[at] * width;
        int64_t which = 0;
        for (; which + 2 <= number; which += 2)
            dot_two_by_avx512(row, vectors + which * width, vectors + (which + 1) * width, width,
                              out + which * count + at, out + (which + 1) * count + at);
        if (which < number)
            out[which * count + at] = dot_one_by_avx512(row, vectors + which * width, width);
    }
}
#endif
