/* The part of kernels.c that takes one hop of a walk: its edges, and what passes along them. */

/* All edges of a hop: passages about what is mentioned, other sentences with it, facts of others
   that mention what the passages are about, and the passages of these; in this order in `out`. */
void clew_find_hop(const walk_graph *graph, const int64_t *chunks, int64_t count,
                   const int64_t *known, int64_t knowns, const int64_t *entities, int64_t mentions,
                   float claim, int64_t common, triples *out)
{
    const incidence *stating = &graph->fact_chunk;
    triples *inward = out + 2, *naming = out + 3;
    clew_find_owners(graph, entities, mentions, out);
    clew_find_co_mentions(graph, entities, mentions, common, out + 1);
    clew_find_subjects(graph, chunks, count, known, knowns, claim, common, inward);
    for (int64_t i = 0; i < inward->count && i < inward->room; i++) {
        const int64_t fact = inward->third[i];
        for (int64_t j = stating->starts[fact]; j < stating->starts[fact + 1]; j++)
            put(naming, i, stating->columns[j], fact);
    }
}

/* What a hop goes by: for each mention the index of its passage among `sources`, first those that
   lead outward, of which the first `stated` are in facts; and the scores of facts and passages. */
typedef struct {
    const int64_t *sources, *row, *stating;
    const float *facts, *chunks, *weights, *log_claim, *log_beside, *log_inward;
    int64_t count, outward, stated;
    float sharpness, fit, unsaid;
    triples edges[4];
} hop;

/* The edges of a hop that lead from a passage to another; each column has room for all edges. */
typedef struct {
    int64_t *through, *to;
    float *behind, *carried;
    int64_t count;
} led;

static void lead(const hop *at, led *out, float *highest, int64_t mention, int64_t to, float value)
{
    const int64_t source = at->row[mention];
    if (to == at->sources[source])
        return;
    out->through[out->count] = mention;
    out->to[out->count] = to;
    out->behind[out->count++] = value;
    highest[source] = value > highest[source] ? value : highest[source];
}

static void clear(float *highest, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        highest[i] = -99.0f; /* as `_LOWEST` in retrieve/hop.py */
}

/* What each outward mention is worth: by how far its sentence is behind the best of its passage. */
static void weigh_mentions(const hop *at, float *worth, float *highest)
{
    clear(highest, at->count);
    for (int64_t i = 0; i < at->stated; i++) {
        worth[i] = at->facts[at->stating[i]];
        if (worth[i] > highest[at->row[i]])
            highest[at->row[i]] = worth[i];
    }
    for (int64_t i = 0; i < at->stated; i++)
        worth[i] = at->sharpness * (worth[i] - highest[at->row[i]]);
    for (int64_t i = at->stated; i < at->outward; i++)
        worth[i] = at->unsaid;
}

/* Weigh the edges of a hop: what each carries, and how far it is behind the best one out of its
   passage. `worth` has room for a number a mention, `highest` for one a source. */
void clew_weigh_hop(const hop *at, float *worth, float *highest, led *out)
{
    const triples *owned = at->edges, *beside = owned + 1, *naming = owned + 3;
    weigh_mentions(at, worth, highest);
    clear(highest, at->count);
    for (int64_t i = 0; i < owned->count; i++) {
        const int64_t mention = owned->first[i], to = owned->second[i];
        const float value = worth[mention] + at->log_claim[i] + at->fit * at->chunks[to];
        lead(at, out, highest, mention, to, value);
    }
    for (int64_t i = 0; i < beside->count; i++) {
        const int64_t mention = beside->first[i];
        const float fit = worth[mention] + at->fit * at->facts[beside->third[i]];
        lead(at, out, highest, mention, beside->second[i], fit + at->log_beside[mention]);
    }
    for (int64_t i = 0; i < naming->count; i++) {
        const int64_t mention = naming->first[i];
        const float fit = at->fit * at->facts[naming->third[i]];
        const float value = fit + at->log_inward[mention];
        lead(at, out, highest, at->outward + mention, naming->second[i], value);
    }
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t source = at->row[out->through[i]];
        out->behind[i] -= highest[source];
        out->carried[i] = at->weights[at->sources[source]];
    }
}
