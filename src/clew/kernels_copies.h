/* The part of kernels.c that tells which of some passages may be copies of each other. */

/* Passages, by vector rows and by what they mention, and what makes a pair worth comparing. */
typedef struct {
    const uint16_t *matrix; /* none where vectors do not tell */
    const int64_t *rows, *positions;
    const int64_t *starts;   /* of the entities of each passage, ascending */
    const int32_t *entities;
    const int32_t *words; /* of each passage */
    int64_t width, count;
    float near, near_if_long, same;
    int64_t long_words, few, others;
} likeness;

/* How many distinct entities a passage mentions. */
static int64_t count_mentions(const likeness *at, int64_t passage)
{
    int64_t count = 0;
    for (int64_t i = at->starts[passage]; i < at->starts[passage + 1]; i++)
        count += i == at->starts[passage] || at->entities[i] != at->entities[i - 1];
    return count;
}

/* How many distinct entities two passages both mention. */
static int64_t count_shared(const likeness *at, int64_t one, int64_t other)
{
    int64_t i = at->starts[one], j = at->starts[other], count = 0;
    while (i < at->starts[one + 1] && j < at->starts[other + 1]) {
        const int32_t left = at->entities[i], right = at->entities[j];
        count += left == right;
        while (left <= right && i < at->starts[one + 1] && at->entities[i] == left)
            i++;
        while (right <= left && j < at->starts[other + 1] && at->entities[j] == right)
            j++;
    }
    return count;
}

/* Whether two passages mention much the same, or too little to tell; nearly the same if they are
   not `sure` to be near each other. */
static int mention_alike(const likeness *at, const int64_t *mentions, int64_t one, int64_t other,
                         int sure)
{
    const int64_t fewer = mentions[one] < mentions[other] ? mentions[one] : mentions[other];
    const int64_t more = mentions[one] + mentions[other] - fewer;
    const int64_t shared = count_shared(at, at->positions[one], at->positions[other]);
    if (!sure && more - shared > at->others)
        return 0;
    return (float)shared >= at->same * (float)fewer || fewer < at->few;
}

/* Mark the pairs of `count` passages that are worth comparing, in a table of count x count. `wide`
   has room for a vector and a number each, `mentions` for a number each. With less than `crowd` passages near
   any of them, these included, marks say only which are near. */
void clew_find_pairs(const likeness *at, int64_t crowd, float *wide, int64_t *mentions,
                     uint8_t *marks)
{
    const int64_t count = at->count;
    int64_t most = 0;
    for (int64_t one = 0; one < count; one++) {
        float *found = wide + at->width;
        marks[one * count + one] = 0;
        const uint16_t *row = at->matrix + at->rows[one] * at->width;
        for (int64_t i = 0; i < at->width; i++)
            wide[i] = widen(row[i]);
        clew_dot_halves(at->matrix, at->width, at->rows + one + 1, count - one - 1, wide, 1, found);
        for (int64_t other = one + 1; other < count; other++) {
            const float near = found[other - one - 1];
            marks[one * count + other] = near >= at->near ? 1 + (near >= at->near_if_long) : 0;
            marks[other * count + one] = marks[one * count + other];
        }
    }
    for (int64_t one = 0; one < count; one++) {
        int64_t others = 0;
        for (int64_t other = 0; other < count; other++)
            others += marks[one * count + other] > 0;
        most = others > most ? others : most;
        mentions[one] = others ? count_mentions(at, at->positions[one]) : 0;
    }
    for (int64_t one = 0; one < count; one++)
        for (int64_t other = one + 1; other < count; other++) {
            uint8_t *mark = marks + one * count + other;
            if (!*mark)
                continue;
            const int both_long = at->words[at->positions[one]] >= at->long_words &&
                                  at->words[at->positions[other]] >= at->long_words;
            *mark = most + 1 < crowd ||
                    mention_alike(at, mentions, one, other, *mark > 1 || !both_long);
            marks[other * count + one] = *mark;
        }
}
