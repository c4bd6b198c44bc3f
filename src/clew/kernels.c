/* Loops over sign bits and vectors that numpy needs several passes for (see kernels.py). */

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* The best version for the processor is chosen when the library is loaded. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define VERSIONS __attribute__((target_clones("arch=icelake-server", "arch=x86-64-v3", "default")))
#else
#define VERSIONS
#endif

enum { LANES = 32, PIECE = 2048, AHEAD = 2, LINE = 64 };

#include "kernels_bits.h"

/* Fetch a row that is read soon; rows that follow each other the processor fetches by itself. */
static inline void fetch_ahead(const void *matrix, const int64_t *rows, int64_t at, int64_t count,
                               int64_t bytes)
{
    if (at + AHEAD >= count || rows[at + AHEAD] - rows[at] == AHEAD)
        return;
    for (int64_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const char *)matrix + rows[at + AHEAD] * bytes + i);
}

/* A 16-bit number as a 32-bit one. */
static inline float widen(uint16_t half)
{
    /* Sign and the other 15 bits, shifted to their places: too small by a power of two. */
    uint32_t bits = ((uint32_t)(half & 0x8000u) << 16) | ((uint32_t)(half & 0x7FFFu) << 13);
    float small;
    memcpy(&small, &bits, sizeof small);
    return small * 0x1p112f;
}

#if defined(__aarch64__)
static inline float add_quads(const float32x4_t *sum)
{
    float32x4_t low = vaddq_f32(vaddq_f32(sum[0], sum[4]), vaddq_f32(sum[2], sum[6]));
    float32x4_t high = vaddq_f32(vaddq_f32(sum[1], sum[5]), vaddq_f32(sum[3], sum[7]));
    float32x4_t four = vaddq_f32(low, high);
    return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

static float dot_floats_by_neon(const float *row, const float *vector, int64_t width)
{
    float32x4_t sum[LANES / 4];
    for (int part = 0; part < LANES / 4; part++)
        sum[part] = vdupq_n_f32(0);
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES)
        for (int part = 0; part < LANES / 4; part++)
            sum[part] = vfmaq_f32(sum[part], vld1q_f32(row + i + 4 * part),
                                  vld1q_f32(vector + i + 4 * part));
    float total = add_quads(sum);
    for (; i < width; i++)
        total += row[i] * vector[i];
    return total;
}

static float dot_halves_by_neon(const uint16_t *row, const float *vector, int64_t width)
{
    float32x4_t sum[LANES / 4];
    for (int part = 0; part < LANES / 4; part++)
        sum[part] = vdupq_n_f32(0);
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES)
        for (int part = 0; part < LANES / 4; part += 2) {
            const int64_t from = i + 4 * part;
            float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(row + from));
            sum[part] = vfmaq_f32(sum[part], vcvt_f32_f16(vget_low_f16(halves)),
                                  vld1q_f32(vector + from));
            sum[part + 1] = vfmaq_f32(sum[part + 1], vcvt_high_f32_f16(halves),
                                      vld1q_f32(vector + from + 4));
        }
    float total = add_quads(sum);
    for (; i < width; i++)
        total += widen(row[i]) * vector[i];
    return total;
}
#else
static inline float add_lanes(float *sum)
{
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            sum[lane] += sum[lane + half];
    return sum[0];
}
#endif

VERSIONS static void dot_floats_plainly(const float *matrix, int64_t width, const int64_t *rows,
                                        int64_t count, const float *vectors, int64_t number,
                                        float *out)
{
    for (int64_t at = 0; at < count; at++) {
        const float *row = matrix + rows[at] * width;
        fetch_ahead(matrix, rows, at, count, width * (int64_t)sizeof(float));
        for (int64_t which = 0; which < number; which++) {
            const float *vector = vectors + which * width;
#if defined(__aarch64__)
            out[which * count + at] = dot_floats_by_neon(row, vector, width);
#else
            float sum[LANES] = {0};
            int64_t i = 0;
            for (; i + LANES <= width; i += LANES)
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += row[i + lane] * vector[i + lane];
            for (; i < width; i++)
                sum[0] += row[i] * vector[i];
            out[which * count + at] = add_lanes(sum);
#endif
        }
    }
}

VERSIONS static void dot_halves_plainly(const uint16_t *matrix, int64_t width, const int64_t *rows,
                                        int64_t count, const float *vectors, int64_t number,
                                        float *out)
{
    for (int64_t at = 0; at < count; at++) {
        fetch_ahead(matrix, rows, at, count, width * (int64_t)sizeof(uint16_t));
        for (int64_t which = 0; which < number; which++) {
            const uint16_t *row = matrix + rows[at] * width;
            const float *vector = vectors + which * width;
#if defined(__aarch64__)
            out[which * count + at] = dot_halves_by_neon(row, vector, width);
#else
            float sum[LANES] = {0};
            int64_t i = 0;
            for (; i + LANES <= width; i += LANES)
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += widen(row[i + lane]) * vector[i + lane];
            for (; i < width; i++)
                sum[0] += widen(row[i]) * vector[i];
            out[which * count + at] = add_lanes(sum);
#endif
        }
    }
}

#include "kernels_dot.h"

/* Dot products of some rows of 32-bit numbers with vectors; a row is read once for all. */
void clew_dot_floats(const float *matrix, int64_t width, const int64_t *rows, int64_t count,
                     const float *vectors, int64_t number, float *out)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        dot_floats_by_avx2(matrix, width, rows, count, vectors, number, out);
        return;
    }
#endif
    dot_floats_plainly(matrix, width, rows, count, vectors, number, out);
}

/* Dot products of some rows of 16-bit numbers with vectors. */
void clew_dot_halves(const uint16_t *matrix, int64_t width, const int64_t *rows, int64_t count,
                     const float *vectors, int64_t number, float *out)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        dot_halves_by_avx512(matrix, width, rows, count, vectors, number, out);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        dot_halves_by_f16c(matrix, width, rows, count, vectors, number, out);
        return;
    }
#endif
    dot_halves_plainly(matrix, width, rows, count, vectors, number, out);
}

/* Round to five digits as numpy does: to the nearest, of two to the even one. */
VERSIONS static void round_cosines(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double scaled = (double)(values[i] * 1e5f);
        const double whole = (scaled + 0x1.8p52) - 0x1.8p52; /* for less than 2^51 */
        values[i] = (float)(scaled < 0x1p31 && scaled > -0x1p31 ? whole : scaled) / 1e5f;
    }
}

/* Cosines of groups of rows, each with a vector of its own, rounded to five digits; returns 0, or
   1 if a row is below 0, or 2 if there is none of that number: nothing is computed then. */
int64_t clew_score_groups(const void *matrix, int64_t is_half, int64_t total, int64_t width,
                          const int64_t *rows, const int64_t *starts, int64_t groups,
                          const float *vectors, float *out)
{
    const int64_t count = starts[groups];
    int64_t below = 0, beyond = 0;
    for (int64_t i = 0; i < count; i++) {
        below |= rows[i] < 0;
        beyond |= rows[i] >= total;
    }
    if (below | beyond)
        return beyond ? 2 : 1;
    for (int64_t group = 0; group < groups; group++) {
        const int64_t first = starts[group], size = starts[group + 1] - first;
        const float *vector = vectors + group * width;
        if (is_half)
            clew_dot_halves(matrix, width, rows + first, size, vector, 1, out + first);
        else
            clew_dot_floats(matrix, width, rows + first, size, vector, 1, out + first);
    }
    round_cosines(out, count);
    return 0;
}

/* Sums of the words of rows, each word weighed by its place, modulo 2^64. The lower and the upper
   halves of weights lie in two rows: so vectors are multiplied by 32 bits at a time. */
VERSIONS void clew_sum_words(const uint32_t *words, int64_t rows, int64_t width,
                             const uint32_t *weights, uint64_t *out)
{
    for (int64_t row = 0; row < rows; row++, words += width) {
        uint64_t low = 0, high = 0;
        for (int64_t i = 0; i < width; i++) {
            low += (uint64_t)words[i] * weights[i];
            high += (uint64_t)words[i] * weights[width + i];
        }
        out[row] = low + (high << 32);
    }
}

/* Whether one position is to come after another: by a lower score, else by key and position. */
static inline int comes_after(const float *scores, const int64_t *keys, int64_t one, int64_t other)
{
    if (scores[one] != scores[other])
        return scores[one] < scores[other];
    return keys[one] != keys[other] ? keys[one] > keys[other] : one > other;
}

/* Let what is at the top of a heap, whose top comes last, sink to its place. */
static void sink(const float *scores, const int64_t *keys, int64_t *heap, int64_t size)
{
    for (int64_t at = 0, child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && comes_after(scores, keys, heap[child + 1], heap[child]))
            child++;
        if (comes_after(scores, keys, heap[at], heap[child]))
            return;
        const int64_t held = heap[at];
        heap[at] = heap[child];
        heap[child] = held;
    }
}

#include "kernels_total.h"

/* Positions of the `most` highest of the scores that reach `floor`; returns how many there are. */
static int64_t find_above(const float *scores, const int64_t *keys, int64_t count, int64_t most,
                          float floor, int64_t *heap)
{
    int64_t size = 0;
    for (int64_t at = 0; at < count; at++) {
        const float least = size < most ? floor : scores[heap[0]];
        for (; at + LANES <= count; at += LANES) { /* most are too low: several are told at once */
            int high = 0;
            for (int lane = 0; lane < LANES; lane++)
                high |= scores[at + lane] >= least;
            if (high)
                break;
        }
        for (const int64_t end = at + LANES < count ? at + LANES : count; at < end; at++) {
            if (size < most && scores[at] >= floor) {
                int64_t place = size++;
                for (; place && comes_after(scores, keys, at, heap[(place - 1) / 2]);
                     place = (place - 1) / 2)
                    heap[place] = heap[(place - 1) / 2];
                heap[place] = at;
            } else if (size == most && comes_after(scores, keys, heap[0], at)) {
                heap[0] = at;
                sink(scores, keys, heap, size);
            }
        }
        at--;
    }
    return size;
}

/* Positions of the `most` highest scores (there are as many), best first; ties go by key. */
void clew_find_top(const float *scores, const int64_t *keys, int64_t count, int64_t most,
                   int64_t *heap)
{
    const float floor = find_floor(scores, count, most);
    int64_t size = find_above(scores, keys, count, most, floor, heap);
    for (int64_t at = 0; size < most && at < count; at++) /* what is no number comes last */
        if (!(scores[at] >= floor))
            heap[size++] = at;
    while (--size > 0) {
        const int64_t last = heap[0];
        heap[0] = heap[size];
        sink(scores, keys, heap, size);
        heap[size] = last;
    }
}

/* Take the positions that are not known yet, each once, and mark them; returns their number. */
int64_t clew_take_unknown(uint8_t *known, const int64_t *positions, int64_t count, int64_t *out)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        if (!known[positions[i]]) {
            known[positions[i]] = 1;
            out[found++] = positions[i];
        }
    return found;
}

/* One ranking by forward push (graph/pagerank_push.py): the graph, and a slot per touched node. */
typedef struct {
    const int64_t *starts;
    const int32_t *columns;
    const float *weights;    /* none where every edge weighs 1 */
    const double *strengths; /* none likewise */
    int32_t *slots;
    int64_t *nodes;
    double *passed, *waiting;
    int64_t *first, *degree;
    double *strength;
    int64_t *chosen;
    double *mass;
    int64_t base, count, used, budget, drained;
    double damping, level, dangling, least, factor;
} push_state;

/* The slot of a node; nodes met for the first time get the next one. */
static inline int64_t find_slot(push_state *at, int64_t node)
{
    int64_t slot = (int64_t)at->slots[node] - at->base;
    if (slot >= 0)
        return slot;
    slot = at->count++;
    at->slots[node] = (int32_t)(at->base + slot);
    at->nodes[slot] = node;
    at->passed[slot] = at->waiting[slot] = 0;
    at->first[slot] = at->starts[node];
    at->degree[slot] = at->starts[node + 1] - at->starts[node];
    at->strength[slot] = at->strengths ? at->strengths[node] : (double)at->degree[slot];
    return slot;
}

void clew_push_seeds(push_state *at, const int64_t *seeds, const double *masses, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        at->waiting[find_slot(at, seeds[i])] = masses[i];
}

/* Push all that waits at the first `count` chosen slots along their edges. */
void clew_push_chosen(push_state *at, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t slot = at->chosen[i];
        at->mass[i] = at->damping * at->waiting[slot];
        at->passed[slot] += at->waiting[slot];
        at->waiting[slot] = 0;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t slot = at->chosen[i], first = at->first[slot];
        const int64_t last = first + at->degree[slot];
        if (at->strength[slot] <= 0) {
            at->dangling += at->mass[i];
            continue;
        }
        const double share = at->mass[i] / at->strength[slot];
        at->used += last - first;
        for (int64_t edge = first; edge < last; edge++) {
            const int64_t target = find_slot(at, at->columns[edge]);
            at->waiting[target] += at->weights ? share * (double)at->weights[edge] : share;
        }
    }
}

static inline double edges_of(const push_state *at, int64_t slot)
{
    return at->degree[slot] > 1 ? (double)at->degree[slot] : 1.0;
}

/* Choose the slots with more waiting per edge than the level; returns how many edges they have. */
static int64_t choose_above(push_state *at, int64_t *count)
{
    int64_t found = 0, edges = 0;
    for (int64_t slot = 0; slot < at->count; slot++)
        if (at->waiting[slot] > at->level * edges_of(at, slot)) {
            at->chosen[found++] = slot;
            edges += at->degree[slot];
        }
    *count = found;
    return edges;
}

static double next_level(const push_state *at)
{
    double highest = 0;
    for (int64_t slot = 0; slot < at->count; slot++)
        if (at->waiting[slot] > highest * edges_of(at, slot))
            highest = at->waiting[slot] / edges_of(at, slot);
    return (at->level < highest ? at->level : highest) / at->factor;
}

/* Push level by level until nothing waits; returns how many were chosen that do not all fit. */
int64_t clew_push_levels(push_state *at)
{
    while (at->level > at->least) {
        int64_t count;
        const int64_t edges = choose_above(at, &count);
        if (edges > at->budget - at->used)
            return count;
        clew_push_chosen(at, count);
        if (edges <= at->drained)
            at->level = next_level(at);
    }
    return 0;
}

#include "kernels_choose.h"
#include "kernels_copies.h"
#include "kernels_walk.h"
#include "kernels_hop.h"
