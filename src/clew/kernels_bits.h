/* The part of kernels.c that counts differing sign bits. */

#if defined(__aarch64__)
enum { BYTE_WORDS = 31 }; /* words whose counts of bits, 8 a byte, fit into a byte */

/* Differing bits of two rows, which lie beside each other, as two numbers. */
static inline uint64x2_t count_two(const uint64_t *bits, int64_t words, int64_t stride,
                                   const uint64_t *asked)
{
    uint64x2_t total = vdupq_n_u64(0);
    for (int64_t first = 0; first < words; first += BYTE_WORDS) {
        const int64_t last = words - first < BYTE_WORDS ? words : first + BYTE_WORDS;
        uint8x16_t counts = vdupq_n_u8(0);
        for (int64_t word = first; word < last; word++) {
            uint64x2_t differing =
                veorq_u64(vld1q_u64(bits + word * stride), vdupq_n_u64(asked[word]));
            counts = vaddq_u8(counts, vcntq_u8(vreinterpretq_u8_u64(differing)));
        }
        total = vaddq_u64(total, vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(counts))));
    }
    return total;
}
#endif

#if defined(__x86_64__)
enum { BYTE_WORDS = 31 }; /* words whose counts of bits, 8 a byte, fit into a byte */
enum { FAR_AHEAD = 2048 }; /* bytes: a processor looks ahead within a page only */

/* Set bits of each byte. */
__attribute__((target("avx2"))) static inline __m256i count_bytes(__m256i bits)
{
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i ones = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bits, 4), low);
    return _mm256_add_epi8(_mm256_shuffle_epi8(ones, _mm256_and_si256(bits, low)),
                           _mm256_shuffle_epi8(ones, upper));
}

/* 16 numbers of 64 bits as numbers of 16 bits; halves of registers are packed apart. */
__attribute__((target("avx2"))) static inline void store_counts(__m256i *counts, uint16_t *out)
{
    for (int part = 0; part < 4; part++)
        counts[part] = _mm256_sad_epu8(counts[part], _mm256_setzero_si256());
    const __m256i packed = _mm256_packus_epi32(_mm256_packus_epi32(counts[0], counts[1]),
                                               _mm256_packus_epi32(counts[2], counts[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)out, _mm256_permutevar8x32_epi32(packed, order));
}

/* Differing bits of 16 rows at a time, which have few words, from one vector or from two; returns
   how many were counted. Bytes are summed over the words of a row before they are added up: nothing
   is stored on the way. */
__attribute__((target("avx2"), always_inline)) static inline int64_t
count_by_avx2(const uint64_t *bits, int64_t words, int64_t stride, int64_t rows,
              const uint64_t *asked, const int both, uint16_t *out, int64_t apart)
{
    int64_t row = 0;
    for (; row + 16 <= rows; row += 16) {
        __m256i one[4], other[4];
        for (int part = 0; part < 4; part++)
            one[part] = other[part] = _mm256_setzero_si256();
        for (int64_t word = 0; word < words; word++) {
            const __m256i wanted = _mm256_set1_epi64x((long long)asked[word]);
            const __m256i more = _mm256_set1_epi64x((long long)asked[both ? words + word : word]);
            const __m256i *held = (const __m256i *)(bits + word * stride + row);
            __builtin_prefetch((const char *)held + FAR_AHEAD);
            __builtin_prefetch((const char *)held + FAR_AHEAD + LINE);
            for (int part = 0; part < 4; part++) {
                const __m256i four = _mm256_loadu_si256(held + part);
                one[part] =
                    _mm256_add_epi8(one[part], count_bytes(_mm256_xor_si256(four, wanted)));
                if (both)
                    other[part] =
                        _mm256_add_epi8(other[part], count_bytes(_mm256_xor_si256(four, more)));
            }
        }
        store_counts(one, out + row);
        if (both)
            store_counts(other, out + apart + row);
    }
    return row;
}

__attribute__((target("avx2"))) static int64_t
count_one_by_avx2(const uint64_t *bits, int64_t words, int64_t stride, int64_t rows,
                  const uint64_t *asked, uint16_t *out)
{
    return count_by_avx2(bits, words, stride, rows, asked, 0, out, 0);
}

__attribute__((target("avx2"))) static int64_t
count_two_by_avx2(const uint64_t *bits, int64_t words, int64_t stride, int64_t rows,
                  const uint64_t *asked, uint16_t *out, int64_t apart)
{
    return count_by_avx2(bits, words, stride, rows, asked, 1, out, apart);
}
#endif

/* Count the differing bits of `rows` rows, which lie word by word, `stride` apart. */
VERSIONS static void count_rest(const uint64_t *bits, int64_t words, int64_t stride, int64_t rows,
                                const uint64_t *asked, uint16_t *out)
{
#if defined(__aarch64__)
    for (; rows >= 2; rows -= 2, bits += 2, out += 2) {
        uint64x2_t found = count_two(bits, words, stride, asked);
        out[0] = (uint16_t)vgetq_lane_u64(found, 0);
        out[1] = (uint16_t)vgetq_lane_u64(found, 1);
    }
#endif
    uint64_t counts[PIECE];
    for (int64_t i = 0; i < rows; i++)
        counts[i] = 0;
    for (int64_t word = 0; word < words; word++) {
        const uint64_t *held = bits + word * stride;
        const uint64_t wanted = asked[word];
        for (int64_t i = 0; i < rows; i++)
            counts[i] += (uint64_t)__builtin_popcountll(held[i] ^ wanted);
    }
    for (int64_t i = 0; i < rows; i++)
        out[i] = (uint16_t)counts[i];
}

/* The same from `number` vectors; what differs from each lies `apart`. */
static void count_piece(const uint64_t *bits, int64_t words, int64_t stride, int64_t rows,
                        const uint64_t *asked, int64_t number, uint16_t *out, int64_t apart)
{
    for (int64_t which = 0, step; which < number; which += step) {
        int64_t done = 0;
        step = 1;
#if defined(__x86_64__)
        if (words <= BYTE_WORDS && __builtin_cpu_supports("avx2") &&
            !__builtin_cpu_supports("avx512vpopcntdq")) {
            step = which + 1 < number ? 2 : 1; /* what is read is counted twice */
            done = step == 2 ? count_two_by_avx2(bits, words, stride, rows, asked + which * words,
                                                 out + which * apart, apart)
                             : count_one_by_avx2(bits, words, stride, rows, asked + which * words,
                                                 out + which * apart);
        }
#endif
        for (int64_t one = which; one < which + step; one++)
            count_rest(bits + done, words, stride, rows - done, asked + one * words,
                       out + one * apart + done);
    }
}

/* Differing bits of all rows of `blocks` blocks, each of words x rows, from each of `number`
   vectors; what differs from each lies `apart`. */
void clew_count_signs(const uint64_t *bits, int64_t blocks, int64_t words, int64_t rows,
                          const uint64_t *asked, int64_t number, uint16_t *out, int64_t apart)
{
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t first = 0; first < rows; first += PIECE) {
            int64_t size = rows - first < PIECE ? rows - first : PIECE;
            count_piece(bits + block * words * rows + first, words, rows, size, asked, number,
                        out + block * rows + first, apart);
        }
}

/* Mark the words of which, times `factor`, no bit is left of `shift`. */
VERSIONS static void mark_sampled(const uint64_t *words, int64_t count, uint64_t factor,
                                  int64_t shift, uint8_t *marks)
{
    for (int64_t i = 0; i < count; i++)
        marks[i] = (words[i] * factor) >> shift == 0;
}

/* Positions in `rows` of those whose first word is marked; the words of `number` blocks of `size`
   rows come first, then those of the rows that follow, `total` in all. Rows below 0 are left out.
   `marks` has room for a mark a row. Returns how many there are, or -1 if there is no such row. */
int64_t clew_sample_rows(const uint64_t *blocks, int64_t number, int64_t words, int64_t size,
                         const uint64_t *tail, int64_t total, const int64_t *rows, int64_t count,
                         uint64_t factor, int64_t shift, uint8_t *marks, int64_t *out)
{
    int64_t found = 0;
    for (int64_t block = 0; block < number; block++)
        mark_sampled(blocks + block * words * size, size, factor, shift, marks + block * size);
    mark_sampled(tail, total - number * size, factor, shift, marks + number * size);
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] >= total)
            return -1;
        if (rows[i] >= 0 && marks[rows[i]])
            out[found++] = i;
    }
    return found;
}

/* How many of some distances (without positions: of all) there are of each; 1 if one is too high. */
int64_t clew_count_each(const uint16_t *distances, int64_t total, const int64_t *positions,
                        int64_t count, int64_t kinds, int64_t *counts)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = positions ? positions[i] : i;
        if (at < 0 || at >= total || distances[at] >= kinds)
            return 1;
        counts[distances[at]]++;
    }
    return 0;
}
