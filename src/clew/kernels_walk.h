/* The part of kernels.c that finds the edges of a walk, and what passes along them. */

/* Rows of a sparse matrix: those of `row` are columns[starts[row]] to columns[starts[row + 1]]. */
typedef struct {
    const int64_t *starts;
    const int32_t *columns;
    const float *weights;
} incidence;

/* What a walk goes by (graph/walk_edges.py): incidences, and what is known of entities. */
typedef struct {
    incidence chunk_fact, fact_entity, chunk_entity, entity_chunk, entity_fact, fact_chunk, owners;
    const uint8_t *literal;
    const int64_t *namesake;
    const float *about; /* parallel to the columns of chunk_entity */
} walk_graph;

/* Columns that are filled in up to `room`; `count` goes on, so that the caller knows what it takes. */
typedef struct {
    int64_t *first, *second, *third;
    int64_t room, count;
} triples;

static inline void put(triples *out, int64_t first, int64_t second, int64_t third)
{
    if (out->count < out->room) {
        out->first[out->count] = first;
        out->second[out->count] = second;
        out->third[out->count] = third;
    }
    out->count++;
}

static inline int64_t degree(const incidence *links, int64_t row)
{
    return links->starts[row + 1] - links->starts[row];
}

/* Whether an entity is no literal, and none of the ascending `known` has its name. */
static int can_follow(const walk_graph *graph, int64_t entity, const int64_t *known, int64_t count)
{
    const int64_t name = graph->namesake[entity];
    for (int64_t i = 0; i < count && known[i] <= name; i++)
        if (known[i] == name)
            return 0;
    return !graph->literal[entity];
}

static int is_own_name(const walk_graph *graph, int64_t chunk, int64_t entity, float claim)
{
    const incidence *links = &graph->chunk_entity;
    for (int64_t edge = links->starts[chunk]; edge < links->starts[chunk + 1]; edge++)
        if (links->columns[edge] == entity && graph->about[edge] >= claim)
            return 1;
    return 0;
}

/* What the facts of some chunks mention: index of the chunk, entity, fact. */
void clew_find_mentions(const walk_graph *graph, const int64_t *chunks, int64_t count,
                        const int64_t *known, int64_t knowns, float claim, triples *out)
{
    const incidence *facts = &graph->chunk_fact, *members = &graph->fact_entity;
    for (int64_t at = 0; at < count; at++)
        for (int64_t i = facts->starts[chunks[at]]; i < facts->starts[chunks[at] + 1]; i++) {
            const int64_t fact = facts->columns[i];
            for (int64_t j = members->starts[fact]; j < members->starts[fact + 1]; j++) {
                const int64_t entity = members->columns[j];
                if (members->weights[j] > 0 && can_follow(graph, entity, known, knowns) &&
                    !is_own_name(graph, chunks[at], entity, claim))
                    put(out, at, entity, fact);
            }
        }
}

/* Facts that mention what some chunks are about: index of the chunk, entity, fact. */
void clew_find_subjects(const walk_graph *graph, const int64_t *chunks, int64_t count,
                        const int64_t *known, int64_t knowns, float claim, int64_t common,
                        triples *out)
{
    const incidence *links = &graph->chunk_entity, *facts = &graph->entity_fact;
    for (int64_t at = 0; at < count; at++)
        for (int64_t i = links->starts[chunks[at]]; i < links->starts[chunks[at] + 1]; i++) {
            const int64_t entity = links->columns[i];
            if (!(graph->about[i] >= claim))
                continue;
            const int64_t passages = degree(&graph->entity_chunk, entity);
            if (passages <= 1 || passages > common || !can_follow(graph, entity, known, knowns))
                continue;
            for (int64_t j = facts->starts[entity]; j < facts->starts[entity + 1]; j++)
                if (facts->weights[j] > 0)
                    put(out, at, entity, facts->columns[j]);
        }
}

/* Passages about entities: number of the entity, passage, edge of `owners`. */
void clew_find_owners(const walk_graph *graph, const int64_t *entities, int64_t count, triples *out)
{
    const incidence *owners = &graph->owners;
    for (int64_t at = 0; at < count; at++)
        for (int64_t i = owners->starts[entities[at]]; i < owners->starts[entities[at] + 1]; i++)
            put(out, at, owners->columns[i], i);
}

/* Other sentences with an entity that is not too common: its number, their passage, fact. */
void clew_find_co_mentions(const walk_graph *graph, const int64_t *entities, int64_t count,
                           int64_t common, triples *out)
{
    const incidence *facts = &graph->entity_fact, *chunks = &graph->fact_chunk;
    for (int64_t at = 0; at < count; at++) {
        const int64_t entity = entities[at], passages = degree(&graph->entity_chunk, entity);
        if (passages <= 1 || passages > common)
            continue;
        for (int64_t i = facts->starts[entity]; i < facts->starts[entity + 1]; i++) {
            const int64_t fact = facts->columns[i];
            for (int64_t j = chunks->starts[fact]; j < chunks->starts[fact + 1]; j++)
                put(out, at, chunks->columns[j], fact);
        }
    }
}

/* The highest weight that reaches each passage, of equals the last, and the mention it comes by. */
void clew_keep_highest(const int64_t *through, const int64_t *to, const float *carried,
                       const float *share, int64_t edges, float decay, float *reached, int32_t *via)
{
    for (int64_t i = 0; i < edges; i++) {
        const float weight = carried[i] * share[i] * decay;
        if (weight >= reached[to[i]]) {
            reached[to[i]] = weight;
            via[to[i]] = (int32_t)through[i];
        }
    }
}
