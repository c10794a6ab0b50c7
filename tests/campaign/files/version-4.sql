BEGIN TRANSACTION;
CREATE TABLE commands (
    id INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    arguments TEXT NOT NULL,
    version TEXT NOT NULL,
    changes TEXT NOT NULL DEFAULT '{}',
    undoes INTEGER UNIQUE REFERENCES commands (id) CHECK (undoes < id),
    CHECK ((kind = 'undo') = (undoes IS NOT NULL))
    );
INSERT INTO "commands" VALUES(1,'2026-11-24T16:28:19.499Z','create','{}','0.2.0','{"settings": 1}',NULL);
INSERT INTO "commands" VALUES(2,'2026-11-24T16:28:19.512Z','suggest','{"n":2}','0.2.0','{"suggestions": 2}',NULL);
INSERT INTO "commands" VALUES(3,'2026-11-24T16:28:19.516Z','record','{"string":"CCO"}','0.2.0','{"measurements": 1}',NULL);
INSERT INTO "commands" VALUES(4,'2026-11-24T16:28:19.526Z','record','{"string":"CCC"}','0.2.0','{"measurements": 1}',NULL);
INSERT INTO "commands" VALUES(5,'2026-11-24T16:28:19.528Z','correct','{"string":"CCC"}','0.2.0','{"measurements": 1}',NULL);
CREATE TABLE discards (
    id INTEGER PRIMARY KEY,
    measurement INTEGER NOT NULL REFERENCES measurements (id),
    reason TEXT NOT NULL,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
CREATE TABLE exclusions (
    id INTEGER PRIMARY KEY,
    string TEXT NOT NULL CHECK (string <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    identifier TEXT,
    reason TEXT NOT NULL,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
CREATE TABLE libraries (
    id INTEGER PRIMARY KEY,
    size INTEGER NOT NULL CHECK (size > 0),
    hashes BLOB,
    removed BLOB,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    string TEXT NOT NULL CHECK (string <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    context TEXT NOT NULL DEFAULT '[]',
    value REAL CHECK (typeof(value) IN ('real', 'null') AND abs(value) <= 1e150),
    further TEXT NOT NULL DEFAULT '{}',
    failure TEXT,
    standard_error REAL CHECK (standard_error IS NULL OR (standard_error > 0 AND value IS NOT NULL)),
    source TEXT,
    line INTEGER,
    suggestion INTEGER REFERENCES suggestions (id),
    replicate TEXT,
    details TEXT NOT NULL DEFAULT '{}',
    identifier TEXT,
    censored TEXT CHECK (censored IS NULL OR (censored IN ('<', '>') AND value IS NOT NULL)),
    replaces INTEGER REFERENCES measurements (id) CHECK (replaces < id),
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
,
    CHECK (value IS NULL OR failure IS NULL),
    CHECK (value IS NOT NULL OR failure IS NOT NULL OR further <> '{}'));
INSERT INTO "measurements" VALUES(1,'CCO','CCO','[["fidelity","assay"]]',6.5,'{}',NULL,NULL,NULL,NULL,1,NULL,'{}',NULL,NULL,NULL,3,NULL);
INSERT INTO "measurements" VALUES(2,'CCC','CCC','[["fidelity","docking"]]',3.5,'{}',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,NULL,4,NULL);
INSERT INTO "measurements" VALUES(3,'CCC','CCC','[["fidelity","docking"]]',4.5,'{}',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,2,5,NULL);
CREATE TABLE settings (
    id INTEGER PRIMARY KEY,
    contents TEXT NOT NULL,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
INSERT INTO "settings" VALUES(1,'{"objective":"pIC50","direction":"maximize","unit":null,"string_column":"string","batch_size":10,"initial":10,"design":"random","include":[],"limits":null,"surrogate":"auto","acquisition":"gibbon","transform":null,"seed":0,"space":{},"pool":null,"filters":[],"parts":{},"allow_repeats":false,"contexts":{"type":"Contexts","possible":[[["fidelity","docking"]],[["fidelity","assay"]]],"target":[["fidelity","assay"]],"costs":[0.01,1.0]},"constraints":[]}',1,NULL);
CREATE TABLE snapshots (
    id INTEGER PRIMARY KEY,
    surrogate TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 0),
    summary TEXT NOT NULL,
    state BLOB,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
CREATE TABLE suggestions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    batch INTEGER NOT NULL CHECK (batch > 0),
    position INTEGER NOT NULL CHECK (position > 0),
    string TEXT NOT NULL CHECK (string <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    context TEXT NOT NULL DEFAULT '[]',
    mean REAL,
    std REAL CHECK (std >= 0),
    low REAL,
    high REAL,
    acquisition TEXT,
    score REAL,
    reason TEXT NOT NULL,
    snapshot INTEGER REFERENCES snapshots (id),
    identifier TEXT,
    cells TEXT NOT NULL DEFAULT '{}',
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
,
    UNIQUE (batch, position));
INSERT INTO "suggestions" VALUES(1,'B01-01',1,1,'CCO','CCO','[["fidelity","assay"]]',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,'{}',2,NULL);
INSERT INTO "suggestions" VALUES(2,'B01-02',1,2,'CCN','CCN','[["fidelity","docking"]]',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,'{}',2,NULL);
CREATE TABLE withdrawals (
    id INTEGER PRIMARY KEY,
    suggestion INTEGER NOT NULL REFERENCES suggestions (id),
    reason TEXT NOT NULL,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
CREATE INDEX suggestions_of_key ON suggestions (key);
CREATE INDEX measurements_of_key ON measurements (key);
CREATE INDEX measurements_of_suggestion ON measurements (suggestion);
CREATE INDEX withdrawals_of_suggestion ON withdrawals (suggestion);
CREATE INDEX corrections ON measurements (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX discards_of_measurement ON discards (measurement);
CREATE TRIGGER commands_stay BEFORE DELETE ON commands BEGIN SELECT RAISE(ABORT, 'commands are kept'); END;
CREATE TRIGGER commands_never_change BEFORE UPDATE ON commands BEGIN SELECT RAISE(ABORT, 'commands never change'); END;
CREATE TRIGGER settings_stay BEFORE DELETE ON settings BEGIN SELECT RAISE(ABORT, 'rows of settings are kept as they are'); END;
CREATE TRIGGER settings_never_change BEFORE UPDATE OF id, contents, made_by ON settings BEGIN SELECT RAISE(ABORT, 'rows of settings are kept as they are'); END;
CREATE TRIGGER settings_undone_once BEFORE UPDATE OF undone_by ON settings WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of settings are kept as they are'); END;
CREATE TRIGGER snapshots_stay BEFORE DELETE ON snapshots BEGIN SELECT RAISE(ABORT, 'rows of snapshots are kept as they are'); END;
CREATE TRIGGER snapshots_never_change BEFORE UPDATE OF id, surrogate, n, summary, state, made_by ON snapshots BEGIN SELECT RAISE(ABORT, 'rows of snapshots are kept as they are'); END;
CREATE TRIGGER snapshots_undone_once BEFORE UPDATE OF undone_by ON snapshots WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of snapshots are kept as they are'); END;
CREATE TRIGGER suggestions_stay BEFORE DELETE ON suggestions BEGIN SELECT RAISE(ABORT, 'rows of suggestions are kept as they are'); END;
CREATE TRIGGER suggestions_never_change BEFORE UPDATE OF id, name, batch, position, string, key, context, mean, std, low, high, acquisition, score, reason, snapshot, identifier, cells, made_by ON suggestions BEGIN SELECT RAISE(ABORT, 'rows of suggestions are kept as they are'); END;
CREATE TRIGGER suggestions_undone_once BEFORE UPDATE OF undone_by ON suggestions WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of suggestions are kept as they are'); END;
CREATE TRIGGER measurements_stay BEFORE DELETE ON measurements BEGIN SELECT RAISE(ABORT, 'rows of measurements are kept as they are'); END;
CREATE TRIGGER measurements_never_change BEFORE UPDATE OF id, string, key, context, value, further, failure, standard_error, source, line, suggestion, replicate, details, identifier, censored, replaces, made_by ON measurements BEGIN SELECT RAISE(ABORT, 'rows of measurements are kept as they are'); END;
CREATE TRIGGER measurements_undone_once BEFORE UPDATE OF undone_by ON measurements WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of measurements are kept as they are'); END;
CREATE TRIGGER discards_stay BEFORE DELETE ON discards BEGIN SELECT RAISE(ABORT, 'rows of discards are kept as they are'); END;
CREATE TRIGGER discards_never_change BEFORE UPDATE OF id, measurement, reason, made_by ON discards BEGIN SELECT RAISE(ABORT, 'rows of discards are kept as they are'); END;
CREATE TRIGGER discards_undone_once BEFORE UPDATE OF undone_by ON discards WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of discards are kept as they are'); END;
CREATE TRIGGER withdrawals_stay BEFORE DELETE ON withdrawals BEGIN SELECT RAISE(ABORT, 'rows of withdrawals are kept as they are'); END;
CREATE TRIGGER withdrawals_never_change BEFORE UPDATE OF id, suggestion, reason, made_by ON withdrawals BEGIN SELECT RAISE(ABORT, 'rows of withdrawals are kept as they are'); END;
CREATE TRIGGER withdrawals_undone_once BEFORE UPDATE OF undone_by ON withdrawals WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of withdrawals are kept as they are'); END;
CREATE TRIGGER exclusions_stay BEFORE DELETE ON exclusions BEGIN SELECT RAISE(ABORT, 'rows of exclusions are kept as they are'); END;
CREATE TRIGGER exclusions_never_change BEFORE UPDATE OF id, string, key, identifier, reason, made_by ON exclusions BEGIN SELECT RAISE(ABORT, 'rows of exclusions are kept as they are'); END;
CREATE TRIGGER exclusions_undone_once BEFORE UPDATE OF undone_by ON exclusions WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of exclusions are kept as they are'); END;
CREATE TRIGGER libraries_stay BEFORE DELETE ON libraries BEGIN SELECT RAISE(ABORT, 'rows of libraries are kept as they are'); END;
CREATE TRIGGER libraries_never_change BEFORE UPDATE OF id, size, hashes, removed, made_by ON libraries BEGIN SELECT RAISE(ABORT, 'rows of libraries are kept as they are'); END;
CREATE TRIGGER libraries_undone_once BEFORE UPDATE OF undone_by ON libraries WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of libraries are kept as they are'); END;
COMMIT;
PRAGMA application_id = 1936813936;
PRAGMA user_version = 4;
