/* The part of kernels.c that tells from cheap scores what is worth comparing exactly. */

/* Distances of elements, by those of their rows; `none` for elements without a row. Returns 1 if
   there is no row of one of the numbers. */
int64_t clew_take_distances(const uint16_t *held, int64_t total, const int64_t *rows, int64_t count,
                            uint16_t none, uint16_t *out)
{
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t last = count - first < PIECE ? count : first + PIECE;
        int64_t below = 0, beyond = 0;
        for (int64_t i = first; i < last; i++) {
            below |= rows[i] < 0;
            beyond |= rows[i] >= total;
        }
        if (beyond)
            return 1;
        if (!below) /* nearly always: these are quicker */
            for (int64_t i = first; i < last; i++)
                out[i] = held[rows[i]];
        else
            for (int64_t i = first; i < last; i++)
                out[i] = rows[i] < 0 ? none : held[rows[i]];
    }
    return 0;
}

/* The new numbers of elements, by their old ones. Returns 1 if there is none of one number. */
int64_t clew_renumber(const int32_t *places, int64_t total, const int32_t *numbers, int64_t count,
                      int32_t *out)
{
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t last = count - first < PIECE ? count : first + PIECE;
        int64_t beyond = 0;
        for (int64_t i = first; i < last; i++)
            beyond |= numbers[i] < 0 || numbers[i] >= total;
        if (beyond)
            return 1;
        for (int64_t i = first; i < last; i++)
            out[i] = places[numbers[i]];
    }
    return 0;
}

/* One bit for each of 16 distances: whether it is within a limit. */
static inline uint32_t mark_within(const uint16_t *distances, uint16_t limit)
{
#if defined(__x86_64__)
    const __m128i most = _mm_set1_epi16((short)limit), *held = (const __m128i *)distances;
    const __m128i low = _mm_subs_epu16(_mm_loadu_si128(held), most);
    const __m128i high = _mm_subs_epu16(_mm_loadu_si128(held + 1), most);
    const __m128i none = _mm_setzero_si128();
    return (uint32_t)_mm_movemask_epi8(
        _mm_packs_epi16(_mm_cmpeq_epi16(low, none), _mm_cmpeq_epi16(high, none)));
#else
    uint32_t marks = 0;
    for (int i = 0; i < 16; i++)
        marks |= (uint32_t)(distances[i] <= limit) << i;
    return marks;
#endif
}

/* Positions of distances up to a limit, ascending, while there is room; returns how many there are. */
int64_t clew_find_within(const uint16_t *distances, int64_t count, uint16_t limit, int64_t room,
                         int64_t *out)
{
    int64_t found = 0, at = 0;
    for (; at + 16 <= count; at += 16)
        for (uint32_t marks = mark_within(distances + at, limit); marks; marks &= marks - 1) {
            if (found < room)
                out[found] = at + __builtin_ctz(marks);
            found++;
        }
    for (; at < count; at++)
        if (distances[at] <= limit) {
            if (found < room)
                out[found] = at;
            found++;
        }
    return found;
}

/* The first positions of distances of at least `low`, which is above 0, up to `high`, ascending;
   returns how many there are, `room` at most. */
int64_t clew_find_between(const uint16_t *distances, int64_t count, uint16_t low, uint16_t high,
                          int64_t room, int64_t *out)
{
    int64_t found = 0, at = 0;
    for (; at + 16 <= count && found < room; at += 16)
        for (uint32_t marks = mark_within(distances + at, high) &
                              ~mark_within(distances + at, (uint16_t)(low - 1));
             marks && found < room; marks &= marks - 1)
            out[found++] = at + __builtin_ctz(marks);
    for (; at < count && found < room; at++)
        if (distances[at] >= low && distances[at] <= high)
            out[found++] = at;
    return found;
}

/* What a table, which has an entry for every distance, says of distances. */
VERSIONS void clew_look_up(const uint16_t *distances, int64_t count, const float *table, float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = table[distances[i]];
}

/* Of passages, without `origin`, those with the highest sum of `fits` and of the scores of words,
   which are divided by `scale`: up to `most`, best first, of equals the one with the lowest code.
   `kept`, `said` and `sums` are room for one number a passage, `keys` too; returns how many were
   chosen. */
int64_t clew_choose_likely(const int64_t *passages, int64_t count, int64_t origin,
                           const int64_t *codes, const float *const *words, int64_t number,
                           float scale, const float *fits, int64_t most, int64_t *kept,
                           int64_t *keys, float *said, float *sums, int64_t *chosen)
{
    int64_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = passages[i];
        if (at == origin)
            continue;
        float sum = 0;
        for (int64_t word = 0; word < number; word++)
            sum += words[word][at];
        kept[size] = at;
        keys[size] = codes[at];
        said[size] = sum / scale;
        sums[size] = said[size] + fits[at];
        size++;
    }
    most = most < size ? most : size;
    if (most > 0)
        clew_find_top(sums, keys, size, most, chosen);
    return most;
}

/* Add the vote of each element to the sums of all passages in its row, in this order. */
void clew_add_votes(const int64_t *starts, const int32_t *columns, const int64_t *elements,
                    const double *votes, int64_t count, double *sums)
{
    for (int64_t i = 0; i < count; i++) {
        const double vote = votes[i];
        for (int64_t edge = starts[elements[i]]; edge < starts[elements[i] + 1]; edge++)
            sums[columns[edge]] += vote;
    }
}

/* Scores of elements: cosines of their rows with a vector where `known`, else estimates. */
typedef struct {
    const void *matrix;
    const int64_t *rows; /* of every element, below 0 for none */
    const float *vector;
    uint8_t *known;
    float *values;
    int64_t is_half, total, width, elements;
} estimates;

/* Compare those elements at some positions that are not known, and take the scores of all of them.
   `room` is for two numbers a position. Returns 2 if there is no such position or row. */
int64_t clew_settle(const estimates *held, const int64_t *positions, int64_t count, int64_t *room,
                    float *out)
{
    int64_t *fresh = room, *rows = room + count, found = 0;
    for (int64_t i = 0; i < count; i++)
        if (positions[i] < 0 || positions[i] >= held->elements)
            return 2;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = positions[i];
        if (held->known[at])
            continue;
        held->known[at] = 1;
        held->values[at] = -1;
        if (held->rows[at] < 0)
            continue;
        fresh[found] = at;
        rows[found++] = held->rows[at];
    }
    const int64_t starts[2] = {0, found};
    if (clew_score_groups(held->matrix, held->is_half, held->total, held->width, rows, starts, 1,
                          held->vector, out))
        return 2;
    for (int64_t i = 0; i < found; i++)
        held->values[fresh[i]] = out[i];
    for (int64_t i = 0; i < count; i++)
        out[i] = held->values[positions[i]];
    return 0;
}

/* Raise the fit of some passages to that of their best fact, which is compared if it is not known.
   `room` has a place for two numbers a fact of them, `scores` for one; the facts that were compared
   are the first in `room`. Returns how many these are, or -1 if there is no such fact or row. */
int64_t clew_raise_to_best(const estimates *facts, const int64_t *starts, const int32_t *columns,
                           const int64_t *passages, int64_t count, int64_t *room, int64_t most,
                           float *scores, float *fit)
{
    int64_t *fresh = room, *rows = room + most, found = 0, asked = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t edge = starts[passages[i]]; edge < starts[passages[i] + 1]; edge++) {
            const int64_t at = columns[edge];
            if (at < 0 || at >= facts->elements)
                return -1;
            if (facts->known[at])
                continue;
            if (asked >= most)
                return -1;
            facts->known[at] = 1;
            facts->values[at] = -1;
            fresh[asked++] = at;
        }
    for (int64_t i = 0; i < asked; i++)
        if (facts->rows[fresh[i]] >= 0)
            rows[found++] = facts->rows[fresh[i]];
    const int64_t ends[2] = {0, found};
    if (clew_score_groups(facts->matrix, facts->is_half, facts->total, facts->width, rows, ends, 1,
                          facts->vector, scores))
        return -1;
    for (int64_t i = 0, next = 0; i < asked; i++)
        if (facts->rows[fresh[i]] >= 0)
            facts->values[fresh[i]] = scores[next++];
    for (int64_t i = 0; i < count; i++)
        for (int64_t edge = starts[passages[i]]; edge < starts[passages[i] + 1]; edge++) {
            const float value = facts->values[columns[edge]];
            fit[i] = value > fit[i] ? value : fit[i];
        }
    return asked;
}

/* Where numbers are in an ascending column of numbers of `size` bytes, `stride` bytes apart, or
   would be; each is looked for between two places, of which the first becomes the one found. */
void clew_bisect(const char *column, int64_t stride, int64_t size, const int64_t *wanted,
                 int64_t count, int64_t right, int64_t *first, int64_t *last)
{
    for (int64_t i = 0; i < count; i++)
        while (first[i] < last[i]) {
            const int64_t middle = first[i] + (last[i] - first[i]) / 2;
            const char *held = column + middle * stride;
            int64_t value;
            if (size == 4) {
                int32_t narrow;
                memcpy(&narrow, held, sizeof narrow);
                value = narrow;
            } else
                memcpy(&value, held, sizeof value);
            if (right ? value <= wanted[i] : value < wanted[i])
                first[i] = middle + 1;
            else
                last[i] = middle;
        }
}
