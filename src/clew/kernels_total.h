/* The part of kernels.c that ranks by several scores of every element. */

#include <stdlib.h>

enum { BLOCKS = 64 }; /* scores of which the highest is looked at first */

/* The highest of every `BLOCKS` scores, which lie `number` apart. */
VERSIONS static void find_highest(const float *scores, int64_t number, float *highest)
{
    memcpy(highest, scores, (size_t)number * sizeof(float));
    for (int64_t block = 1; block < BLOCKS; block++)
        for (int64_t i = 0; i < number; i++)
            highest[i] = scores[block * number + i] > highest[i] ? scores[block * number + i]
                                                                 : highest[i];
}

/* Let what is at the top of a heap, whose top is the lowest, sink to its place. */
static void sink_number(float *heap, int64_t size)
{
    const float held = heap[0];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= held)
            break;
        heap[at] = heap[child];
    }
    heap[at] = held;
}

/* A score that at least `most` reach, and few more; the lowest there is where it is not worth it. */
static float find_floor(const float *scores, int64_t count, int64_t most)
{
    const int64_t number = count / BLOCKS;
    float *highest = number >= 2 * most ? malloc((size_t)number * sizeof(float)) : NULL;
    if (highest == NULL)
        return -__builtin_inff();
    find_highest(scores, number, highest);
    for (int64_t size = 1; size <= most; size++) { /* the first ones as a heap */
        const float held = highest[size - 1];
        int64_t place = size - 1;
        for (; place && highest[(place - 1) / 2] > held; place = (place - 1) / 2)
            highest[place] = highest[(place - 1) / 2];
        highest[place] = held;
    }
    for (int64_t i = most; i < number; i++)
        if (highest[i] > highest[0]) {
            highest[0] = highest[i];
            sink_number(highest, most);
        }
    const float found = highest[0];
    free(highest);
    return found;
}

/* The total of every passage: the higher of what reached it and of `best`, a share of that, and
   shares of its relevance and fit. Not for several processors: sums are as numpy rounds them. */
void clew_sum_totals(const float *reached, const float *best, const float *relevance,
                     const float *fit, const float *shares, int64_t count, float *out)
{
    const float added = shares[0], relevant = shares[1], fitting = shares[2];
    for (int64_t i = 0; i < count; i++) {
        const float more = added * best[i], plain = relevant * relevance[i] + fitting * fit[i];
        out[i] = ((reached[i] > best[i] ? reached[i] : best[i]) + more) + plain;
    }
}

/* The mean of two scores of every element, each by its range. */
void clew_mix_evenly(const float *one, const float *other, const float *ranges, int64_t count,
                     float *out)
{
    const float low = ranges[0], span = ranges[1], most = ranges[2];
    for (int64_t i = 0; i < count; i++)
        out[i] = (one[i] - low) / span * 0.5f + other[i] / most * 0.5f;
}
