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
INSERT INTO "commands" VALUES(1,'2026-11-23T14:48:39.450Z','create','{}','0.2.0','{"settings": 1}',NULL);
INSERT INTO "commands" VALUES(2,'2026-11-23T14:48:39.461Z','suggest','{"n":2}','0.2.0','{"snapshots": 1, "suggestions": 3}',NULL);
INSERT INTO "commands" VALUES(3,'2026-11-23T14:48:39.669Z','record','{"string":"B01-01"}','0.2.0','{"measurements": 1}',NULL);
INSERT INTO "commands" VALUES(4,'2026-11-23T14:48:39.676Z','record','{"string":"B01-02"}','0.2.0','{"measurements": 1}',NULL);
INSERT INTO "commands" VALUES(5,'2026-11-23T14:48:39.680Z','withdraw','{"suggestions":["B01-03"],"reason":"sold out"}','0.2.0','{"withdrawals": 1}',NULL);
INSERT INTO "commands" VALUES(6,'2026-11-23T14:48:39.684Z','undo','{}','0.2.0','{"withdrawals": 1}',5);
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
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
,
    CHECK (value IS NULL OR failure IS NULL),
    CHECK (value IS NOT NULL OR failure IS NOT NULL OR further <> '{}'));
INSERT INTO "measurements" VALUES(1,'CCO','CCO','[]',6.5,'{}',NULL,0.1,NULL,NULL,1,NULL,'{}',3,NULL);
INSERT INTO "measurements" VALUES(2,'CCN','CCN','[]',NULL,'{}','did not dissolve',NULL,NULL,NULL,2,NULL,'{}',4,NULL);
CREATE TABLE settings (
    id INTEGER PRIMARY KEY,
    contents TEXT NOT NULL,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
INSERT INTO "settings" VALUES(1,'{"objective":"pIC50","direction":"maximize","unit":null,"string_column":"smiles","batch_size":2,"initial":10,"surrogate":"auto","acquisition":"gibbon","transform":null,"seed":0,"space":{"type":"pool","kind":"molecule"},"pool":null,"filters":[],"parts":{},"allow_repeats":false,"contexts":null,"constraints":[]}',1,NULL);
CREATE TABLE snapshots (
    id INTEGER PRIMARY KEY,
    surrogate TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 0),
    summary TEXT NOT NULL,
    state BLOB,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
INSERT INTO "snapshots" VALUES(1,'StringGP',3,'{"parameters":{"noise_variance":0.5}}',X'789CAB564A54B232AC0500082A0209',2,NULL);
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
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
,
    UNIQUE (batch, position));
INSERT INTO "suggestions" VALUES(1,'B01-01',1,1,'CCO','CCO','[]',6.1,0.4,5.4,6.8,'gibbon',0.2,'{"kind":"explore"}',1,2,NULL);
INSERT INTO "suggestions" VALUES(2,'B01-02',1,2,'CCN','CCN','[]',NULL,NULL,NULL,NULL,NULL,NULL,'{}',1,2,NULL);
INSERT INTO "suggestions" VALUES(3,'B01-03',1,3,'CCC','CCC','[]',NULL,NULL,NULL,NULL,NULL,NULL,'{}',1,2,NULL);
CREATE TABLE withdrawals (
    id INTEGER PRIMARY KEY,
    suggestion INTEGER NOT NULL REFERENCES suggestions (id),
    reason TEXT NOT NULL,
    
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
);
INSERT INTO "withdrawals" VALUES(1,3,'sold out',5,6);
CREATE INDEX suggestions_of_key ON suggestions (key);
CREATE INDEX measurements_of_key ON measurements (key);
CREATE INDEX measurements_of_suggestion ON measurements (suggestion);
CREATE INDEX withdrawals_of_suggestion ON withdrawals (suggestion);
CREATE TRIGGER commands_stay BEFORE DELETE ON commands BEGIN SELECT RAISE(ABORT, 'commands are kept'); END;
CREATE TRIGGER commands_never_change BEFORE UPDATE ON commands BEGIN SELECT RAISE(ABORT, 'commands never change'); END;
CREATE TRIGGER settings_stay BEFORE DELETE ON settings BEGIN SELECT RAISE(ABORT, 'rows of settings are kept as they are'); END;
CREATE TRIGGER settings_never_change BEFORE UPDATE OF id, contents, made_by ON settings BEGIN SELECT RAISE(ABORT, 'rows of settings are kept as they are'); END;
CREATE TRIGGER settings_undone_once BEFORE UPDATE OF undone_by ON settings WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of settings are kept as they are'); END;
CREATE TRIGGER snapshots_stay BEFORE DELETE ON snapshots BEGIN SELECT RAISE(ABORT, 'rows of snapshots are kept as they are'); END;
CREATE TRIGGER snapshots_never_change BEFORE UPDATE OF id, surrogate, n, summary, state, made_by ON snapshots BEGIN SELECT RAISE(ABORT, 'rows of snapshots are kept as they are'); END;
CREATE TRIGGER snapshots_undone_once BEFORE UPDATE OF undone_by ON snapshots WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of snapshots are kept as they are'); END;
CREATE TRIGGER suggestions_stay BEFORE DELETE ON suggestions BEGIN SELECT RAISE(ABORT, 'rows of suggestions are kept as they are'); END;
CREATE TRIGGER suggestions_never_change BEFORE UPDATE OF id, name, batch, position, string, key, context, mean, std, low, high, acquisition, score, reason, snapshot, made_by ON suggestions BEGIN SELECT RAISE(ABORT, 'rows of suggestions are kept as they are'); END;
CREATE TRIGGER suggestions_undone_once BEFORE UPDATE OF undone_by ON suggestions WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of suggestions are kept as they are'); END;
CREATE TRIGGER measurements_stay BEFORE DELETE ON measurements BEGIN SELECT RAISE(ABORT, 'rows of measurements are kept as they are'); END;
CREATE TRIGGER measurements_never_change BEFORE UPDATE OF id, string, key, context, value, further, failure, standard_error, source, line, suggestion, replicate, details, made_by ON measurements BEGIN SELECT RAISE(ABORT, 'rows of measurements are kept as they are'); END;
CREATE TRIGGER measurements_undone_once BEFORE UPDATE OF undone_by ON measurements WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of measurements are kept as they are'); END;
CREATE TRIGGER withdrawals_stay BEFORE DELETE ON withdrawals BEGIN SELECT RAISE(ABORT, 'rows of withdrawals are kept as they are'); END;
CREATE TRIGGER withdrawals_never_change BEFORE UPDATE OF id, suggestion, reason, made_by ON withdrawals BEGIN SELECT RAISE(ABORT, 'rows of withdrawals are kept as they are'); END;
CREATE TRIGGER withdrawals_undone_once BEFORE UPDATE OF undone_by ON withdrawals WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL BEGIN SELECT RAISE(ABORT, 'rows of withdrawals are kept as they are'); END;
COMMIT;
PRAGMA application_id = 1936813936;
PRAGMA user_version = 3;
